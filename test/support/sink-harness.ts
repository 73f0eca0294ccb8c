import { randomUUID } from 'node:crypto';
import type { Database } from '../../src/cursor/database/index.ts';
import { acquireLease } from '../../src/cursor/leases.ts';
import type { Advance, Span } from '../../src/cursor/ledger.ts';
import type { Rejected } from '../../src/cursor/quarantine.ts';
import type { Value } from '../../src/model/columns.ts';
import type { Row } from '../../src/model/flatten.ts';
import type { Instant } from '../../src/model/instant.ts';
import type { Stream } from '../../src/model/streams.ts';
import type { Receipt, Sink } from '../../src/sinks/sink.ts';
import { certified as proof } from './certified.ts';

/** A new place for a sink, and the state beside it. */
export interface SinkPlace {
  state: Database;
  /** Another sink on this place, as another process would open it. */
  createSink(): Sink;
  /** The rows of a reader: text, exact integers, booleans, instants with microseconds, parsed JSON. */
  readRows(stream: Stream): Promise<StoredRow[]>;
  close(): Promise<void>;
}

/** By column name, including bookkeeping columns. */
export type StoredRow = Record<string, Value>;

export type MakeSink = () => Promise<SinkPlace>;

export const NOON: Instant = Date.UTC(2026, 10, 14, 12);
export const MINUTE = 60_000;

/** A row made by hand, so that the test covers the sink and not the flattener. */
export function rowOf(
  stream: Stream,
  id: string,
  at: Instant,
  values: StoredRow = {},
  extra: Row['extra'] = null,
): Row {
  const given: StoredRow = { event: stream.event, timestamp: at, event_id: id, ...values };
  return {
    id,
    at,
    values: stream.columns.map(({ name }) => (Object.hasOwn(given, name) ? (given[name] ?? null) : null)),
    extra,
    contradictions: [],
    typeMismatches: [],
  };
}

let sources = 0;

/** A unique source, so that tests can share a place. */
export const newSource = (): string => `source-${++sources}`;

export type Writer = Awaited<ReturnType<typeof createWriter>>;

/** A writer of one stream of one source: holds the lease and commits batches. */
export async function createWriter(place: SinkPlace, stream: Stream, source = newSource()) {
  const sink = place.createSink();
  const lease = await acquireLease(place.state, source, stream.name, `test of ${source}`);
  const advance = (change: Partial<Advance> = {}): Advance => ({
    source,
    stream: stream.name,
    sink: sink.name,
    commitId: randomUUID(),
    runId: '20261114T120000-00000001',
    epoch: lease.epoch,
    since: NOON,
    spans: [],
    newestSeen: undefined,
    ...change,
  });
  return {
    lease,
    advance,
    async commit(rows: readonly Row[], change?: Partial<Advance>, rejected?: readonly Rejected[]): Promise<Receipt> {
      const batch = await sink.open(stream);
      await batch.write(rows);
      return batch.commit(advance(change), rejected);
    },
  };
}

/** A commit's receipt with these counts; all others are 0. */
export const receipt = (counts: Partial<Receipt>): Receipt => ({
  new: 0,
  changed: 0,
  unchanged: 0,
  sanitized: 0,
  ...counts,
});

export const certified = (start: Instant, end: Instant, rows = 0): Span => ({
  start,
  end,
  certified: proof({ start, end }),
  rows,
});

/** The spans as ledger entries. */
export const asEntries = (spans: readonly Span[]): object[] => spans.map((span) => ({ ...span, certified: true }));

/** The rows of one source, by event id. */
export async function rowsOf(place: SinkPlace, stream: Stream, source: string): Promise<Map<string, StoredRow>> {
  const rows = (await place.readRows(stream)).filter((row) => row._source === source);
  const byId = new Map(rows.map((row) => [String(row.event_id), row]));
  if (byId.size !== rows.length) throw new Error(`${source}: an event is stored twice`);
  return byId;
}
