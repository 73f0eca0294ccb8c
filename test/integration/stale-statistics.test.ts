import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { quoteIdent, type Sql } from '../../src/cursor/sql.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createSeen, selectChanged } from '../../src/sinks/postgres/compare.ts';
import { createStage, markMissing, mergeStage, selectKnown } from '../../src/sinks/postgres/merge.ts';
import type { Partition } from '../../src/sinks/postgres/months.ts';
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

  /** How many rows the statement looked at in tables that are not temporary, and threw away again. */
  async function waste(sql: Sql, stage: Sql | undefined): Promise<number> {
    const tx = await place.db.begin();
    try {
      if (stage) await tx.query(stage);
      const text = `explain (analyze, format json) ${sql.text}`;
      const [answer] = await tx.query<{ 'QUERY PLAN': unknown }>({ text, ...(sql.values && { values: sql.values }) });
      return wasted(answer?.['QUERY PLAN']);
    } finally {
      await tx.rollback();
    }
  }

  const ids = ['e1', 'e2', 'e3'];
  const known = ids.map((event_id, i) => ({ event_id, at: NOON + (i + 1) * MINUTE }));
  const target = { schema: ODD_SCHEMA, stream, partition };
  const staged = (name: string): string => `insert into ${quoteIdent(name)} (event_id, "timestamp")
    select event_id, "timestamp" from unnest(array['${ids.join("','")}'], array_fill(now(), array[3])) as s (event_id, "timestamp")`;

  it('looks up, compares and writes a few known rows by their key', async () => {
    expect(await waste(selectKnown(target, source, ids), undefined)).toBeLessThan(FEW);
    const seen = { text: `${createSeen(stream).text}; ${staged('seen')}` };
    expect(await waste(selectChanged(target, known, source), seen)).toBeLessThan(FEW);
    const stage = { text: `${createStage(stream).text}; ${staged('stage')}; update stage set event = 'lead'` };
    expect(await waste(mergeStage(target, known, source, 'run'), stage)).toBeLessThan(FEW);
  });

  it('marks what vanished from a small window by its time', async () => {
    const window = { start: new Date(NOON).toISOString(), end: new Date(NOON + 10 * MINUTE).toISOString() };
    // Rows of other sources in the same window are met, and no others.
    expect(await waste(markMissing(ODD_SCHEMA, stream, source, window, ids), undefined)).toBeLessThan(FEW);
  });
});

interface Node {
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: Node[];
}

/** Rows that scans of real tables brought up or removed. */
function wasted(plan: unknown): number {
  const visit = (node: Node): number => {
    const inner = (node.Plans ?? []).reduce((sum, child) => sum + visit(child), 0);
    if (!/^_?leads/.test(node['Relation Name'] ?? '') || node.Plans) return inner;
    return inner + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
  };
  return (plan as Array<{ Plan: Node }>).reduce((sum, { Plan }) => sum + visit(Plan), 0);
}
