import { join } from 'node:path';
import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import { createFolderStore } from '../../src/sinks/files/store/folder-store.ts';
import { createIcebergSink } from '../../src/sinks/iceberg/iceberg-sink.ts';
import { createParquetSink } from '../../src/sinks/parquet/parquet-sink.ts';
import { stream } from '../support/clicks.ts';
import { type Home, withHome } from '../support/home.ts';
import { openLoader } from '../support/loader.ts';
import { clickAt } from '../support/polled-clicks.ts';

/**
 * The size of the state for each event in files, after 400 days of 500 events a day, by the length of the reread range.
 * `tsx bench/lake/state.ts`
 */
const DAYS = Number(process.argv[2] ?? 400);
const PER_DAY = Number(process.argv[3] ?? 500);
const TABLES = ['lake_tracks', 'lake_files', 'lake_index'];
/** About as often as autovacuum. */
const VACUUM_DAYS = 2;

process.stdout.write('sink     read again, days   bytes of state an event\n');
for (const type of ['parquet', 'iceberg'] as const)
  for (const days of [4, 90, 3650]) await withHome((home) => measure(home, type, days));

async function measure({ dir, db }: Home, type: 'parquet' | 'iceberg', days: number): Promise<void> {
  const today = startOfDay(Date.now());
  let ago = DAYS;
  const warehouse = join(dir, type);
  // The database's clock is fixed: the reread range is relative to the bench's day.
  const readAgainMs = (): number => (ago + days) * DAY_MS;
  const place = { name: type, state: db, readAgainMs, store: createFolderStore(warehouse) };
  const sink =
    type === 'parquet'
      ? createParquetSink({ ...place, scheme: 'day', compression: 'zstd' })
      : createIcebergSink({ ...place, warehouse, namespace: 'attribution' });
  await sink.prepare(stream);
  const { commit, close } = await openLoader(db, sink, 'main');
  for (; ago > 0; ago--) {
    const at = (n: number): number => today - ago * DAY_MS + Math.floor((n / PER_DAY) * DAY_MS);
    await commit(Array.from({ length: PER_DAY }, (_, n) => clickAt(ago * PER_DAY + n, at(n))));
    if (ago % VACUUM_DAYS === 0) for (const table of TABLES) await db.query({ text: `vacuum tributary.${table}` });
  }
  await close();
  await sink.close();
  const [size] = await db.query<{ bytes: number }>({
    text: `select sum(pg_total_relation_size(('tributary.' || name)::regclass))::float8 as bytes from unnest($1::text[]) name`,
    values: [TABLES],
  });
  const each = ((size?.bytes ?? 0) / (DAYS * PER_DAY)).toFixed(1);
  process.stdout.write(`${type.padEnd(8)} ${String(days).padStart(16)} ${each.padStart(25)}\n`);
}
