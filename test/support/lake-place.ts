import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '../../src/cursor/database.ts';
import { migrate } from '../../src/cursor/migrate.ts';
import { MIGRATIONS } from '../../src/cursor/migrations.ts';
import type { Lake } from '../../src/sinks/parquet/lake.ts';
import { createParquetSink, type ParquetSink } from '../../src/sinks/parquet/parquet-sink.ts';
import { createFolderStore } from '../../src/sinks/parquet/store/folder-store.ts';
import { readWithDuckdb } from './lake-readers.ts';
import { freshDatabase } from './postgres.ts';
import type { SinkPlace } from './sink-harness.ts';

export interface LakePlace extends SinkPlace {
  folder: string;
  stateUrl: string;
  createSink(): ParquetSink;
}

/** A lake in a folder of its own, with a state of its own. */
export async function lakePlace(settings: Partial<Pick<Lake, 'scheme' | 'compression'>> = {}): Promise<LakePlace> {
  const folder = await mkdtemp(join(tmpdir(), 'tributary-lake-'));
  const home = await freshDatabase();
  const state = connect({ url: home.url });
  await migrate(state, MIGRATIONS, { schema: 'tributary' });
  const lake = { name: 'lake', state, scheme: 'day', compression: 'zstd', ...settings } as const;
  return {
    state,
    folder,
    stateUrl: home.url,
    createSink: () => createParquetSink({ ...lake, store: createFolderStore(folder) }),
    readRows: (stream) => readWithDuckdb(folder, stream),
    async close() {
      await state.close();
      await home.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
