import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Row } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import { createFolderStore } from '../../src/sinks/files/store/folder-store.ts';
import { createIcebergSink } from '../../src/sinks/iceberg/iceberg-sink.ts';
import { createParquetSink } from '../../src/sinks/parquet/parquet-sink.ts';
import type { Sink } from '../../src/sinks/sink.ts';
import { ALWAYS, type Home, withHome } from '../support/home.ts';
import { openLoader } from '../support/loader.ts';
import { clickAt } from '../support/polled-clicks.ts';

/**
 * The cost of Iceberg tables relative to the plain lake: a first load, then a day of clicks, polled every five minutes, each poll with
 * the previous fifteen minutes again, and maintained after each. Measures CPU time, which other processes
 * affect less. `tsx bench/iceberg/bench.ts [clicks a day] [polls] [clicks of the day before the first poll]`
 */
const [A_DAY = 1_000_000, POLLS = 288, BEFORE = 0] = process.argv.slice(2).map(Number);
const PER_POLL = Math.round(A_DAY / 288);
const POLL_MS = 300_000;
const FIRST_LOAD = 100_000;
const SHOWN = new Set([1, 12, 48, 144, POLLS]);
/** The current, unfinished day. */
const START = startOfDay(Date.now());

const rowAt = (n: number, isChanged = false): Row =>
  clickAt(n, START + Math.floor((n / PER_POLL) * POLL_MS), isChanged);
const rowsFrom = (from: number, to: number, make: (n: number) => Row = rowAt): Row[] =>
  Array.from({ length: to - from }, (_, i) => make(from + i));

interface Cost {
  files: number;
  bytes: number;
  cpuMs: number;
}

interface Polled {
  name: string;
  dir: string;
  batchRows: number;
  /** Files that a reader of the newest state opens, if there are others. */
  read(): number | undefined;
  poll(batch: readonly Row[]): Promise<Cost>;
}

const sumOf = (costs: readonly Cost[], pick: (cost: Cost) => number): number =>
  costs.reduce((sum, cost) => sum + pick(cost), 0);
const say = (line: string): void => void process.stdout.write(`${line}\n`);

await withHome(async (home) => {
  const sinks = [await openTables(home), await openLake(home)];
  await measureLoad(sinks);
  for (const sink of sinks) {
    for (let n = 0; n < BEFORE; n += sink.batchRows) await sink.poll(rowsFrom(n, Math.min(BEFORE, n + sink.batchRows)));
  }
  say(`${A_DAY} clicks a day, ${PER_POLL} new in a poll, ${BEFORE} before the first`);
  say('after polls | sink | files there, of them read | MB there | a poll (mean of the last 12): files, KB, CPU ms');
  const costs = new Map<Polled, Cost[]>(sinks.map((sink) => [sink, []]));
  for (let poll = 1; poll <= POLLS; poll++) {
    const first = BEFORE + (poll - 1) * PER_POLL;
    const batch = rowsFrom(Math.max(0, first - 3 * PER_POLL), first + PER_POLL);
    for (const [sink, known] of costs) known.push(await sink.poll(batch));
    if (SHOWN.has(poll)) for (const [sink, known] of costs) await show(String(poll), sink, known.slice(-12));
  }
  for (const [sink, known] of costs) {
    const cpuMs = sumOf(known, ({ cpuMs: ms }) => ms);
    const bytes = sumOf(known, ({ bytes: written }) => written);
    say(`${sink.name}: ${POLLS} polls took ${Math.round(cpuMs)} ms of CPU and wrote ${Math.round(bytes / 1e6)} MB`);
  }
  // Ten events of the last fifteen minutes change; then ten of the whole day.
  const end = BEFORE + POLLS * PER_POLL;
  const spread = (from: number): Row[] =>
    Array.from({ length: 10 }, (_, i) => rowAt(from + Math.floor(((end - from) * i) / 10), true));
  for (const sink of sinks) await show('10 changed, late', sink, [await sink.poll(spread(end - 3 * PER_POLL))]);
  for (const sink of sinks) await show('10 changed, all day', sink, [await sink.poll(spread(0))]);
  say(`peak memory ${Math.round(process.resourceUsage().maxRSS / 1024)} MB`);
});

/** A history of four days, in batches as in a first sync; the sinks alternate. */
async function measureLoad(sinks: readonly Polled[]): Promise<void> {
  // Separate numbers: those of the day come later.
  const pastAt = (n: number): Row => clickAt(1e8 + n, START - 4 * DAY_MS + Math.floor((n / FIRST_LOAD) * 4 * DAY_MS));
  const most = Math.max(...sinks.map(({ batchRows }) => batchRows));
  const spent = new Map(sinks.map((sink) => [sink, 0]));
  for (let from = 0; from < FIRST_LOAD; from += most) {
    for (const sink of sinks) {
      for (let n = from; n < from + most; n += sink.batchRows) {
        const { cpuMs } = await sink.poll(rowsFrom(n, n + sink.batchRows, pastAt));
        spent.set(sink, (spent.get(sink) ?? 0) + cpuMs);
      }
    }
  }
  const speeds = [...spent].map(
    ([{ name }, ms]) => `${name} ${Math.round(FIRST_LOAD / (ms / 1000))} rows per second of CPU`,
  );
  say(`first load of ${FIRST_LOAD} rows: ${speeds.join(', ')}`);
}

async function show(after: string, { name, dir, read }: Polled, costs: readonly Cost[]): Promise<void> {
  const all = await filesOf(dir);
  const bytes = [...all.values()].reduce((sum, size) => sum + size, 0);
  const mean = (pick: (cost: Cost) => number): number => sumOf(costs, pick) / costs.length;
  const poll = `${mean(({ files }) => files).toFixed(1)}, ${Math.round(mean((cost) => cost.bytes) / 1e3)}, ${Math.round(mean(({ cpuMs }) => cpuMs))}`;
  const data = [...all.keys()].filter((path) => path.endsWith('.parquet')).length;
  say(`${after} | ${name} | ${all.size}, ${read() ?? data} | ${(bytes / 1e6).toFixed(1)} | ${poll}`);
}

async function openTables({ dir: home, db }: Home): Promise<Polled> {
  const dir = join(home, 'iceberg');
  const store = createFolderStore(dir);
  const place = { name: 'tables', state: db, readAgainMs: ALWAYS, warehouse: dir, namespace: 'attribution', store };
  return polled('iceberg', dir, createIcebergSink(place), db);
}

async function openLake({ dir: home, db }: Home): Promise<Polled> {
  const dir = join(home, 'lake');
  const place = { name: 'lake', state: db, readAgainMs: ALWAYS, store: createFolderStore(dir) };
  return polled('lake', dir, createParquetSink({ ...place, scheme: 'day', compression: 'zstd' }), db);
}

async function polled(name: string, dir: string, sink: Sink, db: Home['db']): Promise<Polled> {
  await sink.prepare(STREAMS.clicks);
  const { commit } = await openLoader(db, sink, name);
  let inTable: number | undefined;
  return {
    name,
    dir,
    batchRows: sink.batchRows,
    read: () => inTable,
    async poll(batch) {
      const before = await filesOf(dir);
      const began = process.cpuUsage();
      await commit(batch);
      await sink.publishProgress?.({ source: name, stream: 'clicks' });
      const done = await sink.maintain?.({ isDueOnly: true });
      const { user, system } = process.cpuUsage(began);
      inTable = done?.['attribution.clicks']?.files;
      const made = [...(await filesOf(dir))].filter(([path, size]) => before.get(path) !== size);
      return {
        files: made.length,
        bytes: made.reduce((sum, [, size]) => sum + size, 0),
        cpuMs: (user + system) / 1000,
      };
    },
  };
}

async function filesOf(dir: string): Promise<Map<string, number>> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(await Promise.all(files.map(async (path) => [path, (await stat(path)).size] as const)));
}
