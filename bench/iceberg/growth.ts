import { randomUUID } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { acquireLease } from '../../src/cursor/leases.ts';
import type { Row } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';
import { createFolderStore } from '../../src/sinks/files/store/folder-store.ts';
import { createIcebergSink, type IcebergSink } from '../../src/sinks/iceberg/iceberg-sink.ts';
import { certified } from '../../test/support/certified.ts';
import { ALWAYS, type Home, withHome } from '../support/home.ts';
import { clickAt } from '../support/polled-clicks.ts';

/**
 * The growth of a table's metadata: all sources are polled every minute and maintained every five, on a simulated clock.
 * Measures CPU time. `tsx bench/iceberg/growth.ts [sources] [minutes] [polls of a source until one brings a row]`
 */
const [SOURCES = 20, MINUTES = 1440, IDLE = 10] = process.argv.slice(2).map(Number);
const MINUTE = 60_000;
const START = Date.now();
let minute = 0;
Date.now = () => START + minute * MINUTE;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

await withHome(async (home) => {
  const old = await openTable(home, 'attribution');
  say(`${SOURCES} sources, a poll a minute, a row in one of ${IDLE}`);
  say('after | snapshots | versions there | newest version, KB | files there, MB | memory, MB | a poll, ms of CPU');
  let took = 0;
  for (minute = 1; minute <= MINUTES; minute++) {
    took += await old.pollAll();
    if (minute !== 1 && minute % Math.min(60, MINUTES) !== 0) continue;
    await show(home, old.dir, took / (minute === 1 ? 1 : minute % 60 || 60));
    took = 0;
  }
  await compare(old, await openTable(home, 'fresh'));
});

/** Alternates polls of the old table and of one an hour old: other load on the machine slows both. */
async function compare(old: Polled, fresh: Polled): Promise<void> {
  const ratios: number[] = [];
  for (const end = minute + 120; minute < end; minute++) {
    const isWarm = minute >= end - 60;
    const [a, b] = [isWarm ? await old.pollAll() : 0, await fresh.pollAll()];
    if (isWarm) ratios.push(a / b);
  }
  const median = ratios.sort((a, b) => a - b)[ratios.length / 2] ?? 0;
  say(
    `a poll, in turns for an hour: CPU of this table ÷ that of one that is an hour old, median: ${median.toFixed(2)}`,
  );
}

interface Polled {
  dir: string;
  /** Polls every source once. Returns the CPU milliseconds for each. */
  pollAll(): Promise<number>;
}

async function openTable(home: Home, namespace: string): Promise<Polled> {
  const dir = join(home.dir, namespace);
  const place = { name: namespace, state: home.db, readAgainMs: ALWAYS, warehouse: dir, namespace };
  const sink = createIcebergSink({ ...place, store: createFolderStore(dir) });
  await sink.prepare(STREAMS.clicks);
  const polls = await Promise.all(Array.from({ length: SOURCES }, (_, i) => openSource(home, sink, i)));
  const pollAll = async (): Promise<number> => {
    const began = process.cpuUsage();
    await Promise.all(polls.map((poll) => poll()));
    const { user, system } = process.cpuUsage(began);
    if (minute % 5 === 0) await sink.maintain({ isDueOnly: true });
    return (user + system) / 1000 / SOURCES;
  };
  return { dir, pollAll };
}

async function openSource({ db }: Home, sink: IcebergSink, i: number): Promise<() => Promise<void>> {
  const source = `${sink.name}-${i}`;
  const lease = await acquireLease(db, source, 'clicks', 'bench');
  const began = Date.now();
  return async () => {
    const now = Date.now();
    const rows: Row[] = (minute + i) % IDLE === 0 ? [clickAt(minute * SOURCES + i, now - 11 * MINUTE)] : [];
    const window = { start: now - 12 * MINUTE, end: now - 10 * MINUTE };
    const batch = await sink.open(STREAMS.clicks);
    await batch.write(rows);
    await batch.commit({
      ...{ source, stream: 'clicks', sink: sink.name, commitId: randomUUID(), runId: '20261114T120000-00000001' },
      ...{ epoch: lease.epoch, since: began - 11 * MINUTE, newestSeen: undefined },
      spans: [{ ...window, certified: certified(window), rows: rows.length }],
    });
    await sink.publishProgress?.({ source, stream: 'clicks' });
  };
}

async function show({ db }: Home, dir: string, pollMs: number): Promise<void> {
  const [row] = await db.query<{ location: string }>({
    text: "select metadata_location as location from public.iceberg_tables where table_name = 'clicks' and table_namespace = 'attribution'",
  });
  const names = (await readdir(dir, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const sizes = await Promise.all(
    names.map(async (entry) => (await stat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0),
  );
  const versions = names.filter(
    ({ name, parentPath }) => name.endsWith('.metadata.json') && parentPath.includes('clicks'),
  );
  const text = await readFile(row?.location.replace(/^file:\/+/, '/') ?? '', 'utf8');
  const snapshots = text.split('"manifest-list"').length - 1;
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const figures = [snapshots, versions.length, (text.length / 1e3).toFixed(0), (bytes / 1e6).toFixed(1)];
  const memory = (process.memoryUsage.rss() / 1e6).toFixed(0);
  say([`${minute} min`, ...figures, memory, pollMs.toFixed(1)].join(' | '));
}
