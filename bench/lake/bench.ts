import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Row } from '../../src/model/flatten.ts';
import { openPartition } from '../../src/sinks/files/partition-file.ts';
import { createFolderStore } from '../../src/sinks/files/store/folder-store.ts';
import { filePath, partitionOf, type Scheme } from '../../src/sinks/parquet/lake.ts';
import { createParquetSink } from '../../src/sinks/parquet/parquet-sink.ts';
import { ALWAYS, type Home, withHome } from '../support/home.ts';
import { openLoader } from '../support/loader.ts';
import { clickAt } from '../support/polled-clicks.ts';

/**
 * The cost of a busy stream: a million clicks a day, polled every five minutes, each poll with the previous fifteen minutes again.
 * Fills a partition to some size, then polls it; counts what a poll writes for each new row. `tsx bench/lake/bench.ts`
 */
const PER_POLL = Math.round(1_000_000 / 288);
const POLLS = 12;
const POLL_MS = 300_000;
/** Rows in the partition before: an hour is polled from its start, a day at its start, in the middle, at its end. */
const CASES: ReadonlyArray<[Scheme, number]> = [
  ['hour', 0],
  ['day', 0],
  ['day', Number(process.argv[2] ?? 500_000)],
  ['day', Number(process.argv[3] ?? 950_000)],
];
const FILL = 20_000;
const START = Date.UTC(2026, 10, 14);

await withHome(async (home) => {
  process.stdout.write('partition  rows before    encoded  copied  bytes written  ms     (each per new row)\n');
  for (const [scheme, before] of CASES) await measure(home, scheme, before);
});

async function measure({ dir, db }: Home, scheme: Scheme, before: number): Promise<void> {
  const source = `${scheme}-${before}`;
  const store = createFolderStore(join(dir, source));
  const sink = createParquetSink({ name: source, state: db, readAgainMs: ALWAYS, scheme, compression: 'zstd', store });
  const { commit } = await openLoader(db, sink, source);
  // Evenly over their period.
  const row = (n: number): Row => clickAt(n, START + Math.floor((n / PER_POLL) * POLL_MS));
  const rows = (from: number, to: number): Row[] => Array.from({ length: to - from }, (_, i) => row(from + i));
  for (let n = 0; n < before; n += FILL) await commit(rows(n, Math.min(before, n + FILL)));

  const path = filePath(scheme, 'clicks', source, partitionOf(scheme, START));
  const groupsNow = async (): Promise<Map<string, number>> => {
    const file = await openPartition(store, path, { source, stream: 'clicks' });
    const groups = new Map(file?.file.groups.map(({ start, length, rows: n }) => [`${start}-${length}`, n]));
    await file?.close();
    return groups;
  };
  const sum = { encoded: 0, copied: 0, bytes: 0, ms: 0 };
  let present = await groupsNow();
  for (let poll = 0; poll < POLLS; poll++) {
    const first = before + poll * PER_POLL;
    const batch = rows(Math.max(0, first - 3 * PER_POLL), first + PER_POLL);
    const began = performance.now();
    await commit(batch);
    sum.ms += performance.now() - began;
    const next = await groupsNow();
    for (const [place, n] of next) sum[present.has(place) ? 'copied' : 'encoded'] += n;
    sum.bytes += (await stat(join(dir, source, path))).size;
    present = next;
  }
  const each = (total: number, digits: number): string => (total / (POLLS * PER_POLL)).toFixed(digits).padStart(7);
  process.stdout.write(
    `${scheme.padEnd(9)} ${String(before).padStart(12)}    ${each(sum.encoded, 1)} ${each(sum.copied, 1)} ${each(sum.bytes, 0).padStart(14)} ${each(sum.ms, 2)}     peak ${Math.round(process.resourceUsage().maxRSS / 1024)} MB\n`,
  );
  await rm(join(dir, source), { recursive: true, force: true });
}
