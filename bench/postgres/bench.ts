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
import { createPostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import { createStorable } from '../../src/sinks/postgres/storable-row.ts';
import type { Sink } from '../../src/sinks/sink.ts';

/**
 * How close loading comes to the fastest thing Postgres can do with the same rows: one raw binary COPY of a prepared buffer
 * into an identical table with the same indexes. Ratios of one run; `npm run bench:postgres`.
 */
const ROWS = Number(process.argv[2] ?? 60_000);
const BATCHES = [1000, 5000, 20_000];
const ROUNDS = 3;
const stream = STREAMS.clicks;
const BOOKS = BOOKKEEPING.filter(({ name }) => name !== '_source');
const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };

const rows = generate(ROWS);
const dir = await mkdtemp(join(tmpdir(), 'tributary-bench-'));
const server = await openEmbedded({ dir, log: silent });
const db = connect({ url: server.url });
try {
  await migrate(db, MIGRATIONS, { schema: 'tributary' });
  const sink = createPostgresSink({ name: 'warehouse', db, schema: 'attribution', state: db });
  await sink.prepare(stream);
  const prepared = prepareCopy(rows);
  const raw = await best(async () => {
    await db.query({
      text: 'drop table if exists attribution.raw; create table attribution.raw (like attribution.clicks including all)',
    });
    return timed(() => db.transaction((tx) => tx.copyIn(rawCopy(), prepared)));
  });
  print('raw COPY of a prepared buffer', raw, raw);
  for (const size of BATCHES) {
    const fresh = await best(async () => {
      await db.query({ text: 'truncate attribution.clicks, attribution.links' });
      return timed(() => load(sink, size));
    });
    print(`new rows, batches of ${size}`, fresh, raw);
    print(`the same rows again, unchanged, batches of ${size}`, await best(() => timed(() => load(sink, size))), raw);
  }
  process.stdout.write(
    `\n${ROWS.toLocaleString('en')} clicks, ${stream.columns.length + BOOKKEEPING.length} columns, best of ${ROUNDS}; raw COPY = 1\n`,
  );
} finally {
  await db.close();
  await server.close();
  await rm(dir, { recursive: true, force: true });
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

async function best(work: () => Promise<number>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < ROUNDS; i++) times.push(await work());
  return Math.min(...times);
}

function print(what: string, ms: number, raw: number): void {
  const perSecond = Math.round((ROWS / ms) * 1000).toLocaleString('en');
  process.stdout.write(
    `${(raw / ms).toFixed(2).padStart(5)}  ${what.padEnd(52)} ${perSecond.padStart(8)} rows/s here\n`,
  );
}
