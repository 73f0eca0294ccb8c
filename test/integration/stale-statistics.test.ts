import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { quoteIdent, type Sql } from '../../src/cursor/database/sql.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createSeen, selectChanged } from '../../src/sinks/postgres/compare.ts';
import { createStage, followStage, markMissing, mergeStage, selectKnown } from '../../src/sinks/postgres/merge.ts';
import type { Partition } from '../../src/sinks/postgres/table.ts';
import { ODD_SCHEMA, type PostgresPlace, postgresPlace } from '../support/postgres-place.ts';
import { createWriter, MINUTE, NOON, rowOf } from '../support/sink-harness.ts';

/**
 * A source that is new in an old table: the statistics say that it has no rows, and the planner believes them for a long time. A batch
 * must read what it is about all the same, and not all that the source has by now.
 */

const ROWS = 4000;
const FEW = 30;
const stream = STREAMS.leads;

describe.each(['none', 'month'] as const)('partition: %s', (partition: Partition) => {
  let place: PostgresPlace;
  let source: string;
  const row = (i: number) => rowOf(stream, `e${i}`, NOON + i * MINUTE);

  beforeAll(async () => {
    place = await postgresPlace({ partition });
    await place.createSink().prepare(stream);
    const [old, young] = [await createWriter(place, stream), await createWriter(place, stream)];
    const rows = Array.from({ length: ROWS }, (_, i) => row(i));
    await old.commit(rows);
    await place.db.query({ text: 'analyze' });
    await young.commit(rows);
    source = young.lease.source;
  });
  afterAll(() => place.close());

  /** How many rows the statement handled on all its way: brought up, joined, or thrown away again. */
  async function effort(sql: Sql, ...before: Sql[]): Promise<number> {
    const tx = await place.db.begin();
    try {
      for (const step of before) await tx.query(step);
      const text = `explain (analyze, format json) ${sql.text}`;
      const [answer] = await tx.query<{ 'QUERY PLAN': Array<{ Plan: Node }> }>({ ...sql, text });
      return (answer?.['QUERY PLAN'] ?? []).reduce((sum, { Plan }) => sum + handled(Plan), 0);
    } finally {
      await tx.rollback();
    }
  }

  const target = { schema: ODD_SCHEMA, stream, partition };
  const fill = (stage: string, count: number): Sql => ({
    text: `insert into ${stage} (event, event_id, "timestamp")
      select event, event_id, "timestamp" + interval '1 second' from ${quoteIdent(ODD_SCHEMA)}.leads
      where _source = $1 order by "timestamp" limit ${count}`,
    values: [source],
  });

  it.each([3, 300])('looks up, compares and writes %i known rows by their key', async (count) => {
    const known = Array.from({ length: count }, (_, i) => ({ event_id: `e${i}`, at: NOON + i * MINUTE }));
    const ids = known.map(({ event_id }) => event_id);
    const few = 12 * count + FEW;
    expect(few).toBeLessThan(ROWS);
    expect(await effort(selectKnown(target, source, ids))).toBeLessThan(few);
    const compare = selectChanged(target, known, source, 'run');
    expect(await effort(compare, createSeen(stream), fill('seen', count))).toBeLessThan(few);
    const merge = mergeStage(target, known, source, 'run');
    expect(await effort(merge, createStage(stream), fill('stage', count))).toBeLessThan(few);
    if (partition === 'none') return;
    const follow = followStage(ODD_SCHEMA, stream, source);
    expect(await effort(follow, createStage(stream), fill('stage', count))).toBeLessThan(few);
  });

  it('marks what vanished from a small window by its time', async () => {
    const window = { start: new Date(NOON).toISOString(), end: new Date(NOON + 10 * MINUTE).toISOString() };
    // Rows of other sources in the same window are met, and no others.
    expect(await effort(markMissing(ODD_SCHEMA, stream, source, window, ['e1', 'e2']))).toBeLessThan(3 * FEW);
  });

  it('compares what a window shows with what it has without a join, which a planner gets wrong in a large table', async () => {
    const count = 300;
    const window = { start: new Date(NOON).toISOString(), end: new Date(NOON + count * MINUTE).toISOString() };
    const ids = Array.from({ length: count }, (_, i) => `e${i}`);
    // What it takes for cheap there.
    const nestedLoops = ['hashjoin', 'mergejoin'].map((way) => ({ text: `set local enable_${way} = off` }));
    const mark = markMissing(ODD_SCHEMA, stream, source, window, ids);
    expect(await effort(mark, ...nestedLoops)).toBeLessThan(12 * count);
  });
});

interface Node {
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Join Filter'?: number;
  ScheduledStreams?: Node[];
}

const handled = (node: Node): number => {
  const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0);
  const here = (node['Actual Rows'] + removed) * node['Actual Loops'];
  return (node.ScheduledStreams ?? []).reduce((sum, child) => sum + handled(child), here);
};
