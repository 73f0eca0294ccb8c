import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Row } from '../../../src/model/flatten.ts';
import { createParquetSink } from '../../../src/sinks/parquet/parquet-sink.ts';
import { jsonAsText } from '../../../src/sinks/parquet/partition-file.ts';
import { createFolderStore } from '../../../src/sinks/parquet/store/folder-store.ts';
import { WRITERS } from '../../parquet/writers.ts';
import { COLUMNS, storedRows, stream } from '../../support/clicks.ts';
import { loadAll } from '../../support/loader.ts';
import { timed } from '../../support/measure.ts';
import type { Ground } from '../throughput.ts';

/** Ways into Parquet files. DuckDB writes the same rows, as a program has them, into one file. */
export function intoParquet({ home: { dir, db, url }, service, sync }: Ground, rows: readonly Row[]) {
  const table = { columns: [...jsonAsText(COLUMNS)], rows: [...storedRows(rows)] };
  let lakes = 0;

  /** A lake that nobody has written to. */
  const fresh = async (): Promise<{ name: string; path: string }> => {
    await rm(join(dir, `lake-${lakes}`), { recursive: true, force: true });
    const name = `lake-${++lakes}`;
    return { name, path: join(dir, name) };
  };
  const write = (name: string) => () => timed(() => WRITERS[name]?.(table, join(dir, 'bench.parquet')));

  return {
    'DuckDB, data chunks': write('DuckDB data chunks → COPY, zstd'),
    'DuckDB, appender': write('DuckDB appender → COPY, zstd'),
    'our encoder': write('ours, zstd'),
    'the lake, new rows': async () => {
      const { name, path } = await fresh();
      const store = createFolderStore(path);
      const sink = createParquetSink({ name, state: db, scheme: 'day', compression: 'zstd', store });
      await sink.prepare(stream);
      return timed(() => loadAll(db, sink, rows));
    },
    'the whole way into Parquet': async () => {
      const { name: source, path } = await fresh();
      return sync({ ...service, url, source, sinks: { lake: { type: 'parquet', path } } });
    },
  };
}
