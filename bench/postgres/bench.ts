import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '../../src/cursor/database.ts';
import { openEmbedded } from '../../src/cursor/embedded.ts';
import { acquireLease } from '../../src/cursor/leases.ts';
import { migrate } from '../../src/cursor/migrate.ts';
import { MIGRATIONS } from '../../src/cursor/migrations.ts';
import type { Value } from '../../src/model/coerce.ts';
import type { Column } from '../../src/model/columns.ts';
import { createFlatten, type Row } from '../../src/model/flatten.ts';
import { BOOKKEEPING, STREAMS } from '../../src/model/streams.ts';
import { createSandboxService } from '../../src/sandbox/service.ts';
import { encodeCopy } from '../../src/sinks/postgres/copy-encoder.ts';
import type { Partition } from '../../src/sinks/postgres/months.ts';
import { BATCH_ROWS, createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { createStorable } from '../../src/sinks/postgres/storable-row.ts';
import type { Sink } from '../../src/sinks/sink.ts';

/**
 * How close loading comes to the fastest thing Postgres can do with the same rows: one raw binary COPY of a prepared buffer
 * into an identical table with the same indexes. Every round measures everything once, so that a busy moment of the machine
 * meets all alike. Shown are the median of the rounds' ratios, and the ratio of the best times, which a busy machine spoils
 * least. `npm run bench:postgres [rows] [rounds]`.
 */
const ROWS = Number(process.argv[2] ?? 40_000);
const ROUNDS = Number(process.argv[3] ?? 5);
const stream = STREAMS.clicks;
const BOOKS = BOOKKEEPING.filter(({ name }) => name !== '_source');
const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };

interface Case {
  batch: number;
  partition: Partition;
}

const CASES: readonly Case[] = [
  { batch: 1000, partition: 'none' },
  { batch: BATCH_ROWS, partition: 'none' },
  { batch: 20_000, partition: 'none' },
  { batch: BATCH_ROWS, partition: 'month' },
];

const rows = generate(ROWS);
const dir = await mkdtemp(join(tmpdir(), 'tributary-bench-'));
// Checkpoints and vacuums at their own time would fall on one measurement and not on the other.
const settings = { max_wal_size: '8GB', checkpoint_timeout: '1h', autovacuum: 'off' };
const server = await openEmbedded({ dir, log: silent, settings });
const db = connect({ url: server.url });
try {
  await migrate(db, MIGRATIONS, { schema: 'tributary' });
  const prepared = prepareCopy(rows);
  const raws: number[] = [];
  const times = new Map<string, number[]>();
  for (let round = 0; round < ROUNDS; round++) {
    raws.push(await rawTime(prepared));
    for (const { batch, partition } of CASES) {
      const sink = await freshSink(partition);
      const where = `batches of ${batch}${partition === 'month' ? ', in months' : ''}`;
      for (const what of ['new rows', 'the same again, unchanged']) {
        const name = `${what}, ${where}`;
        times.set(name, [...(times.get(name) ?? []), await timed(() => load(sink, batch))]);
      }
    }
  }
  process.stdout.write('median  best\n');
  for (const [name, found] of [['raw COPY of a prepared buffer', raws] as const, ...times]) print(name, found, raws);
  const size = `${ROWS.toLocaleString('en')} clicks, ${stream.columns.length + BOOKKEEPING.length} columns`;
  const here = `raw COPY = 1: ${Math.round((ROWS / Math.min(...raws)) * 1000).toLocaleString('en')} rows/s here`;
  process.stdout.write(`\n${size}, ${ROUNDS} rounds; ${here}\n`);
} finally {
  await db.close();
  await server.close();
  await rm(dir, { recursive: true, force: true });
}

async function freshSink(partition: Partition): Promise<Sink> {
  await db.query({ text: 'drop schema if exists attribution cascade' });
  const sink = createPostgresSink({ name: 'warehouse', db, schema: 'attribution', state: db, partition });
  await sink.prepare(stream);
  return sink;
}

async function rawTime(prepared: Buffer[]): Promise<number> {
  await freshSink('none');
  await db.query({ text: 'create table attribution.raw (like attribution.clicks including all)' });
  return timed(() => db.transaction((tx) => tx.copyIn(rawCopy(), prepared)));
}

function generate(count: number): Row[] {
  const service = createSandboxService({ rows: { clicks: count, leads: 0, sales: 0 } });
  const flatten = createFlatten(stream);
  return service.events('clicks').map((record) => flatten(JSON.parse(JSON.stringify(record))));
}

function rawCopy(): string {
  const names = ['_source', ...stream.columns.map((column: Column) => column.name), ...BOOKS.map(({ name }) => name)];
  return `copy attribution.raw (${names.map((name) => `"${name}"`).join(', ')}) from stdin (format binary)`;
}

function prepareCopy(all: readonly Row[]): Buffer[] {
  const kinds = [...stream.columns, ...BOOKS].map(({ kind }) => kind);
  const now = Date.now();
  function* values(): Generator<Value[]> {
    for (const row of createStorable(stream).all(all, ['main'])) yield [...row, now, now, 'bench', null];
  }
  return [...encodeCopy(['text', ...kinds], values())];
}

async function load(sink: Sink, size: number): Promise<void> {
  const lease = await acquireLease(db, 'main', 'clicks', 'bench');
  for (let i = 0; i < rows.length; i += size) {
    const batch = await sink.open(stream);
    await batch.write(rows.slice(i, i + size));
    await batch.commit({
      commitId: `bench-${i}`,
      source: 'main',
      stream: 'clicks',
      sink: 'warehouse',
      runId: 'bench',
      epoch: lease.epoch,
      since: 0,
      spans: [],
      newestSeen: undefined,
    });
  }
  await lease.release();
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function print(what: string, times: readonly number[], raws: readonly number[]): void {
  const ratios = times.map((time, round) => (raws[round] ?? 0) / time).sort((a, b) => a - b);
  const median = ratios[ratios.length >> 1] ?? 0;
  const best = Math.min(...raws) / Math.min(...times);
  process.stdout.write(`${median.toFixed(2).padStart(6)}  ${best.toFixed(2)}  ${what}\n`);
}
