import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../src/cursor/database/index.ts';
import { acquireLease } from '../../../src/cursor/leases.ts';
import type { Advance } from '../../../src/cursor/ledger.ts';
import type { Value } from '../../../src/model/columns.ts';
import { evolvedStream } from '../../../src/model/evolution.ts';
import type { Row } from '../../../src/model/flatten.ts';
import { STREAMS, type Stream } from '../../../src/model/streams.ts';
import { DAY_MS } from '../../../src/model/window.ts';
import type { IcebergSink } from '../../../src/sinks/iceberg/iceberg-sink.ts';
import { certified } from '../../support/certified.ts';
import { rowOf } from '../../support/sink-harness.ts';

/** Tables with what readers get wrong: extremes, nulls, emoji, microseconds, JSON, columns that came later and columns that widened. */
export const NAMESPACE = 'attribution';

/** What every reader must find, in the one form that the Python side prints. */
export interface Expected {
  rows: Array<Record<string, unknown>>;
  figures: Record<string, unknown>;
}

export interface Step {
  step: string;
  expected: Expected;
  options: Record<string, unknown>;
}

const START = Date.UTC(2026, 10, 10);
const DAYS = 3;
const PER_DAY = 40;
const CITY = '東京 😀 Zürich';
const TIMES = ['timestamp', 'click_timestamp'];
const COLUMNS = [
  ...['_source', 'event_id', 'timestamp', 'event_name', 'sale_amount', 'link_clicks', 'click_city', 'click_qr'],
  ...['click_timestamp', 'metadata', 'customer_name', 'sale_weight'],
];

const INTEGERS: readonly Value[] = [0, 1, -1, 2 ** 31, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 53n + 1n, null];
const TEXTS: readonly Value[] = [CITY, '！', '😀', '', 'a"b\\c\n\t', 'ｆｕｌｌ', '\u0000nul', null];
const JSONS: readonly Value[] = [{ plan: 'pro 😀', deep: [1, { x: null }] }, [], {}, [1.5, 'x'], null];

function saleOf(stream: Stream, source: string, n: number, more: Record<string, Value> = {}): Row {
  const at = START + (n % DAYS) * DAY_MS + n * 61_000.001;
  return rowOf(stream, `${source}-${n}`, Math.round(at * 1000) / 1000, {
    sale_amount: INTEGERS[n % INTEGERS.length] ?? null,
    link_id: `link-${n % 7}`,
    link_url: 'https://example.com',
    link_clicks: INTEGERS[(n + 3) % INTEGERS.length] ?? null,
    click_city: TEXTS[n % TEXTS.length] ?? null,
    click_qr: n % 3 === 0 ? null : n % 3 === 1,
    click_timestamp: n % 5 === 0 ? null : START - n * 1.001,
    metadata: JSONS[n % JSONS.length] ?? null,
    customer_id: `customer-${n % 11}`,
    customer_name: n % 4 === 0 ? null : `Ünïcødé ${n}`,
    customer_email: `${n % 11}@example.com`,
    ...more,
  });
}

/** Twenty versions of the metadata are kept, and a round makes up to five: a reader has four rounds to open the one that it was shown. */
const REST_MS = 4000;

const micros = (instant: Value): string => `${Math.round(Number(instant) * 1000)} us`;

function seenRow(stream: Stream, source: string, row: Row, columns: readonly string[]): Record<string, unknown> {
  const value = (name: string): unknown => {
    if (name === '_source') return source;
    const at = stream.columns.findIndex((column) => column.name === name);
    const [kind, held] = [stream.columns[at]?.kind, row.values[at] ?? null];
    if (held === null) return null;
    if (kind === 'timestamp') return micros(held);
    if (kind === 'json') return JSON.stringify(held);
    return kind === 'integer' ? String(held) : held;
  };
  return Object.fromEntries(columns.map((name) => [name, value(name)]));
}

/** Writes step by step; after each one readers may look. */
export async function* writeScene(state: Database, createSink: () => IcebergSink): AsyncGenerator<Step> {
  const held = new Map<string, { source: string; row: Row }>();
  const sink = createSink();
  let certifiedSnapshot: { id: number; rows: number; through: string } | undefined;
  let stream: Stream = STREAMS.sales;
  const leases = new Map<string, number>();

  const commit = async (source: string, rows: readonly Row[], through?: number): Promise<void> => {
    await sink.prepare(stream);
    if (!leases.has(source)) leases.set(source, (await acquireLease(state, source, stream.name, 'interop')).epoch);
    const advance: Advance = {
      ...{ source, stream: stream.name, sink: sink.name, commitId: randomUUID(), runId: 'interop' },
      ...{ epoch: leases.get(source) ?? 0, since: START, newestSeen: undefined },
      spans:
        through === undefined
          ? []
          : [{ start: START, end: through, certified: certified({ start: START, end: through }), rows: rows.length }],
    };
    const batch = await sink.open(stream);
    await batch.write(rows);
    await batch.commit(advance);
    for (const row of rows) held.set(`${source} ${row.id}`, { source, row });
  };

  const look = async (step: string): Promise<Step> => {
    const listed = await state.query<{ table_name: string; metadata_location: string }>({
      text: 'select table_name, metadata_location from public.iceberg_tables order by table_name',
    });
    const columns = COLUMNS.filter((name) => name === '_source' || stream.columns.some((one) => one.name === name));
    const rows = [...held.values()].map(({ source, row }) => seenRow(stream, source, row, columns));
    const [from, to] = [START + DAY_MS, START + 2 * DAY_MS];
    const all = [...held.values()].map(({ row }) => row);
    const city = stream.columns.findIndex(({ name }) => name === 'click_city');
    return {
      step,
      expected: {
        rows,
        figures: {
          filtered: all.filter((row) => row.values[city] === CITY).length,
          window: all.filter(({ at }) => at >= from && at < to).length,
          travelled: certifiedSnapshot?.rows,
          proven: certifiedSnapshot?.through,
          links: 7 * leases.size,
          customers: 11 * leases.size,
          tables: ['customers', 'links', 'sales'],
          partitions: DAYS,
        },
      },
      options: {
        columns,
        times: TIMES,
        city: CITY,
        from: new Date(from).toISOString().replace('Z', '+00:00'),
        to: new Date(to).toISOString().replace('Z', '+00:00'),
        snapshot: certifiedSnapshot?.id,
        locations: Object.fromEntries(listed.map((row) => [row.table_name, row.metadata_location])),
      },
    };
  };

  const numbers = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
  const half = (DAYS * PER_DAY) / 2;
  await commit(
    'main',
    numbers(0, half).map((n) => saleOf(stream, 'main', n)),
    START + DAY_MS,
  );
  certifiedSnapshot = await currentSnapshot(state, held.size);
  yield look('first commit');

  await commit(
    'main',
    numbers(half, 2 * half).map((n) => saleOf(stream, 'main', n)),
  );
  await commit(
    'other',
    numbers(0, half).map((n) => saleOf(stream, 'other', n)),
  );
  const changed = numbers(0, 10).map((n) =>
    saleOf(stream, 'main', n, { sale_amount: n * 1000, event_name: 'Changed' }),
  );
  await commit('main', changed);
  yield look('more, and changes');

  stream = evolvedStream(STREAMS.sales, [{ path: 'sale.weight', name: 'sale_weight', kind: 'integer' }]);
  await commit(
    'main',
    numbers(200, 220).map((n) => saleOf(stream, 'main', n, { sale_weight: n })),
  );
  yield look('a new column');

  stream = evolvedStream(STREAMS.sales, [{ path: 'sale.weight', name: 'sale_weight', kind: 'text' }]);
  for (const [key, { source, row }] of held) {
    const at = stream.columns.findIndex(({ name }) => name === 'sale_weight');
    const weight = row.values[at];
    if (weight !== null && weight !== undefined)
      held.set(key, { source, row: { ...row, values: row.values.with(at, String(weight)) } });
  }
  await commit(
    'main',
    numbers(220, 230).map((n) => saleOf(stream, 'main', n, { sale_weight: 'heavy' })),
  );
  yield look('a column that widened');

  await sink.maintain();
  yield look('files joined');
}

export interface Busy {
  rows: number;
  joined: number;
  expired: number;
  removed: number;
}

/**
 * Writes, changes, joins and expires for as long as somebody asks for more. The event `total` is changed in every commit to the number
 * of rows, so that each answer of a reader can be checked by itself.
 */
export async function* keepWriting(state: Database, sink: IcebergSink): AsyncGenerator<Busy> {
  const stream = STREAMS.sales;
  const busy: Busy = { rows: 0, joined: 0, expired: 0, removed: 0 };
  await sink.prepare(stream);
  const { epoch } = await acquireLease(state, 'busy', stream.name, 'interop');
  const saleAt = (id: string, n: number, amount: number): Row =>
    rowOf(stream, id, START + (n % DAYS) * DAY_MS + n * 1000, { sale_amount: amount, customer_id: `c-${n % 5}` });
  for (;;) {
    const first = busy.rows;
    const more = Array.from({ length: first === 0 ? 9 : 10 }, (_, i) => saleAt(`e-${first + i}`, first + i, i));
    busy.rows += 10;
    const batch = await sink.open(stream);
    await batch.write([...more, saleAt('total', 0, busy.rows)]);
    const names = { source: 'busy', stream: stream.name, sink: sink.name, commitId: randomUUID(), runId: 'interop' };
    await batch.commit({ ...names, epoch, since: START, newestSeen: undefined, spans: [] });
    const done = await sink.maintain();
    for (const { joined, expired, removed } of Object.values(done)) {
      busy.joined += joined;
      busy.expired += expired;
      busy.removed += removed;
    }
    yield busy;
    await sleep(REST_MS);
  }
}

async function currentSnapshot(state: Database, rows: number) {
  const [row] = await state.query<{ location: string }>({
    text: "select metadata_location as location from public.iceberg_tables where table_name = 'sales'",
  });
  const metadata = JSON.parse(await readFile((row?.location ?? '').replace('file://', ''), 'utf8'));
  const id = metadata['current-snapshot-id'] as number;
  const snapshot = metadata.snapshots.find((one: Record<string, unknown>) => one['snapshot-id'] === id);
  return { id, rows, through: snapshot.summary['tributary.complete-through'] as string };
}
