import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Transaction } from '../../src/cursor/database/index.ts';
import type { Sql } from '../../src/cursor/database/sql.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createSanitizer, POSTGRES_TEXT } from '../../src/sinks/merge-rule.ts';
import { selectChanged, sendSeen } from '../../src/sinks/postgres/compare.ts';
import { changedStage, followStage, markMissing, mergeStage, selectKnown } from '../../src/sinks/postgres/merge.ts';
import { sendStage } from '../../src/sinks/postgres/staged.ts';
import type { Partition } from '../../src/sinks/postgres/table.ts';
import { ODD_SCHEMA, type PostgresPlace, postgresPlace } from '../support/postgres-place.ts';
import { createWriter, MINUTE, NOON, rowOf } from '../support/sink-harness.ts';

/**
 * A new source in an old table: the statistics say that it has no rows, and the planner uses them for a long time. A batch
 * must still read only the rows that it needs, not all that the source has by now.
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

  /** The rows that the plan handles in total: read, joined, or filtered out. */
  async function effort(statement: (tx: Transaction) => Promise<Sql> | Sql): Promise<number> {
    const tx = await place.db.begin();
    try {
      const sql = await statement(tx);
      const text = `explain (analyze, format json) ${sql.text}`;
      const [answer] = await tx.query<{ 'QUERY PLAN': Array<{ Plan: Node }> }>({ ...sql, text });
      return (answer?.['QUERY PLAN'] ?? []).reduce((sum, { Plan }) => sum + handled(Plan), 0);
    } finally {
      await tx.rollback();
    }
  }

  const target = () => ({ schema: ODD_SCHEMA, stream, partition, source, runId: 'run' });

  // Few rows are a parameter of the statement, many are in a temp table.
  it.each([3, 300])('looks up, compares and writes %i known rows by their key', async (count) => {
    const known = Array.from({ length: count }, (_, i) => ({ event_id: `e${i}`, at: NOON + i * MINUTE }));
    const ids = known.map(({ event_id }) => event_id);
    const moved = known.map(({ event_id, at }) => rowOf(stream, event_id, at + 1000));
    const values = () => [...createSanitizer(stream, POSTGRES_TEXT).all(moved)];
    const few = 12 * count + FEW;
    expect(few).toBeLessThan(ROWS);
    expect(await effort(() => selectKnown(target(), ids))).toBeLessThan(few);
    const compare = async (tx: Transaction) => selectChanged(target(), await sendSeen(tx, stream, values()), known);
    expect(await effort(compare)).toBeLessThan(few);
    const changed = (tx: Transaction) => sendStage(tx, changedStage(stream), values());
    expect(await effort(async (tx) => mergeStage(target(), await changed(tx), known))).toBeLessThan(few);
    if (partition === 'none') return;
    expect(await effort(async (tx) => followStage(target(), await changed(tx)))).toBeLessThan(few);
  });

  it('marks deleted events of a small window by time', async () => {
    const window = { start: NOON, end: NOON + 10 * MINUTE };
    // Rows of other sources in the same window are read, and no others.
    expect(await effort(() => markMissing(target(), window, ['e1', 'e2']))).toBeLessThan(3 * FEW);
  });

  it('compares a window without a join, which a planner gets wrong in a large table', async () => {
    const count = 300;
    const window = { start: NOON, end: NOON + count * MINUTE };
    const ids = Array.from({ length: count }, (_, i) => `e${i}`);
    // The join that the planner takes for cheap there.
    const nestedLoops = ['hashjoin', 'mergejoin'].map((way) => ({ text: `set local enable_${way} = off` }));
    const mark = markMissing(target(), window, ids);
    const withoutHashes = async (tx: Transaction) => {
      for (const setting of nestedLoops) await tx.query(setting);
      return mark;
    };
    expect(await effort(withoutHashes)).toBeLessThan(12 * count);
  });
});

interface Node {
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Join Filter'?: number;
  Plans?: Node[];
}

const handled = (node: Node): number => {
  const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0);
  const here = (node['Actual Rows'] + removed) * node['Actual Loops'];
  return (node.Plans ?? []).reduce((sum, child) => sum + handled(child), here);
};
