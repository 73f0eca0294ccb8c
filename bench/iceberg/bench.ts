import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Row } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createIcebergSink } from '../../src/sinks/iceberg/iceberg-sink.ts';
import { createParquetSink } from '../../src/sinks/parquet/parquet-sink.ts';
import { createFolderStore } from '../../src/sinks/parquet/store/folder-store.ts';
import type { Sink } from '../../src/sinks/sink.ts';
import { type Home, withHome } from '../support/home.ts';
import { openLoader } from '../support/loader.ts';
import { clickAt } from '../support/polled-clicks.ts';

/**
 * What polling costs Iceberg tables, beside the plain lake: a day of clicks, polled every five minutes, each poll with the fifteen
 * minutes before it once more. `tsx bench/iceberg/bench.ts [clicks a day]`
 */
const A_DAY = Number(process.argv[2] ?? 1_000_000);
const POLLS = 288;
const PER_POLL = Math.round(A_DAY / POLLS);
const POLL_MS = 300_000;
const SHOWN = new Set([1, 12, 48, 144, POLLS]);
const START = Date.UTC(2026, 10, 14);

const rowAt = (n: number, isChanged = false): Row =>
  clickAt(n, START + Math.floor((n / PER_POLL) * POLL_MS), isChanged);
const rows = (from: number, to: number): Row[] => Array.from({ length: to - from }, (_, i) => rowAt(from + i));

interface Polled {
  name: string;
  dir: string;
  poll(batch: readonly Row[]): Promise<{ files: number; bytes: number; ms: number }>;
}

await withHome(async (home) => {
  const sinks = [await openTables(home), await openLake(home)];
  process.stdout.write(`${A_DAY} clicks a day, ${PER_POLL} new in a poll\n`);
  process.stdout.write(
    'after polls  sink     files in it  of them data  MB in it   a poll: files  KB written  ms (mean of the last 12)\n',
  );
  const last = new Map<string, Array<{ files: number; bytes: number; ms: number }>>();
  for (let poll = 1; poll <= POLLS; poll++) {
    const first = (poll - 1) * PER_POLL;
    const batch = rows(Math.max(0, first - 3 * PER_POLL), first + PER_POLL);
    for (const sink of sinks) {
      const costs = last.get(sink.name) ?? [];
      costs.push(await sink.poll(batch));
      last.set(sink.name, costs.slice(-12));
    }
    if (SHOWN.has(poll)) for (const sink of sinks) await show(String(poll), sink, last.get(sink.name) ?? []);
  }
  // Ten events of the last fifteen minutes have changed; then ten of the whole day.
  const end = POLLS * PER_POLL;
  const spread = (from: number): Row[] =>
    Array.from({ length: 10 }, (_, i) => rowAt(from + Math.floor(((end - from) * i) / 10), true));
  for (const sink of sinks) await show('10 changed, late', sink, [await sink.poll(spread(end - 3 * PER_POLL))]);
  for (const sink of sinks) await show('10 changed, all day', sink, [await sink.poll(spread(0))]);
  for (const { dir } of sinks) await rm(dir, { recursive: true, force: true });
});

async function show(
  after: string,
  { name, dir }: Polled,
  costs: ReadonlyArray<{ files: number; bytes: number; ms: number }>,
) {
  const all = await filesOf(dir);
  const mean = (pick: (cost: { files: number; bytes: number; ms: number }) => number): number =>
    costs.reduce((sum, cost) => sum + pick(cost), 0) / costs.length;
  const bytes = [...all.values()].reduce((sum, size) => sum + size, 0);
  const data = [...all.keys()].filter((path) => path.endsWith('.parquet')).length;
  process.stdout.write(
    `${after.padEnd(20)} ${name.padEnd(8)} ${all.size} ${data} ${(bytes / 1e6).toFixed(1)}  ${mean(({ files }) => files).toFixed(1)} ${(mean((cost) => cost.bytes) / 1e3).toFixed(0)} ${mean(({ ms }) => ms).toFixed(0)}  peak ${Math.round(process.resourceUsage().maxRSS / 1024)} MB\n`,
  );
}

async function openTables({ dir: home, db }: Home): Promise<Polled> {
  const dir = join(home, 'iceberg');
  const sink = createIcebergSink({
    name: 'tables',
    state: db,
    warehouse: dir,
    namespace: 'attribution',
    store: createFolderStore(dir),
  });
  return polled('iceberg', dir, sink, db);
}

async function openLake({ dir: home, db }: Home): Promise<Polled> {
  const dir = join(home, 'lake');
  return polled(
    'lake',
    dir,
    createParquetSink({ name: 'lake', state: db, scheme: 'day', compression: 'zstd', store: createFolderStore(dir) }),
    db,
  );
}

async function polled(name: string, dir: string, sink: Sink, db: Home['db']): Promise<Polled> {
  await sink.prepare(STREAMS.clicks);
  const { commit } = await openLoader(db, sink, name);
  return {
    name,
    dir,
    async poll(batch) {
      const before = await filesOf(dir);
      const began = performance.now();
      await commit(batch);
      await sink.publishProgress?.({ source: name, stream: 'clicks' });
      await sink.maintain?.({ isDueOnly: true });
      const ms = performance.now() - began;
      const made = [...(await filesOf(dir))].filter(([path, size]) => before.get(path) !== size);
      return { files: made.length, bytes: made.reduce((sum, [, size]) => sum + size, 0), ms };
    },
  };
}

async function filesOf(dir: string): Promise<Map<string, number>> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(await Promise.all(files.map(async (path) => [path, (await stat(path)).size] as const)));
}
