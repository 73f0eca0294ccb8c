import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from '../../../src/cursor/database/index.ts';
import { MIGRATIONS } from '../../../src/cursor/migrations/index.ts';
import { migrate } from '../../../src/cursor/migrations/migrate.ts';
import { createIcebergSink } from '../../../src/sinks/iceberg/iceberg-sink.ts';
import { createFolderStore } from '../../../src/sinks/parquet/store/folder-store.ts';
import { mustBeNone, startState } from '../built.ts';
import { type Found, Missing, must, type Part, run, withClosers } from '../part.ts';
import { pythonVersions, pythonWith } from '../tools.ts';
import { type Expected, NAMESPACE, writeScene } from './scene.ts';

/**
 * Writes Iceberg tables with everything that readers get wrong, and has them read by pyiceberg, DuckDB and Spark. TRIBUTARY_SPARK_JARS
 * names the Iceberg runtime and a JDBC driver for Postgres, with commas between them.
 */
const HERE = dirname(fileURLToPath(import.meta.url));
const JARS = (process.env.TRIBUTARY_SPARK_JARS ?? '').split(',').filter(Boolean);

const READERS = [
  { name: 'pyiceberg', script: 'pyiceberg_reader.py', needs: 'pyiceberg, sqlalchemy, psycopg2, pyarrow' },
  { name: 'DuckDB', script: 'duckdb_reader.py', needs: 'duckdb, duckdb_extension_avro, duckdb_extension_iceberg' },
  { name: 'Spark', script: 'spark_reader.py', needs: 'pyspark' },
] as const;
type Reader = (typeof READERS)[number];

const OPTIONS = { cwd: HERE, env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' } };

const PACKAGES = [
  'pyiceberg[sql-postgres,pyarrow]',
  'duckdb',
  'duckdb-extension-avro',
  'duckdb-extension-iceberg',
  'pyspark==4.0.1',
];

export const iceberg: Part = {
  name: 'iceberg',
  checks: 'Iceberg tables with extremes, changes, new and widened columns, read by others',
  needs: `Python with ${PACKAGES.join(', ')}; Java and TRIBUTARY_SPARK_JARS for Spark`,
  run: () => withClosers(readTables),
};

async function lacks(python: string, { name, needs }: Reader): Promise<string | undefined> {
  const { code, err } = await run(python, ['-c', `import ${needs}`], OPTIONS);
  if (code !== 0) return `Python cannot import ${needs}: ${err.trim().split('\n').at(-1)}`;
  if (name !== 'Spark') return undefined;
  if (JARS.length < 2) return 'TRIBUTARY_SPARK_JARS does not name the Iceberg runtime and a JDBC driver';
  return (await run('java', ['-version'])).code === 0 ? undefined : 'there is no Java';
}

const text = (value: unknown): string => JSON.stringify(value);

/** Rows in one order and one form, so that two readers of one table say the same text. */
function sortedRows(rows: ReadonlyArray<Record<string, unknown>>): string[] {
  return rows.map((row) => text(Object.fromEntries(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))))).sort();
}

function faultsOf(found: Record<string, unknown>, expected: Expected): Record<string, string> {
  const faults: Record<string, string> = {};
  const rows = sortedRows(found.rows as Array<Record<string, unknown>>);
  const wanted = sortedRows(expected.rows);
  const odd = rows.findIndex((row, i) => row !== wanted[i]);
  if (rows.length !== wanted.length) faults.rows = `${rows.length} rows instead of ${wanted.length}`;
  else if (odd >= 0) faults.rows = `${rows[odd]} instead of ${wanted[odd]}`;
  for (const [key, value] of Object.entries(expected.figures)) {
    if (key in found && text(found[key]) !== text(value)) faults[key] = `${text(found[key])} instead of ${text(value)}`;
  }
  return faults;
}

async function readTables(opened: (close: () => unknown) => void): Promise<Found> {
  const python = await pythonWith('iceberg', PACKAGES);
  const lacking = new Map<string, string>();
  for (const reader of READERS) {
    const missing = await lacks(python, reader);
    if (missing !== undefined) lacking.set(reader.name, missing);
  }
  const readers = READERS.filter(({ name }) => !lacking.has(name));
  if (readers.length === 0) throw new Missing([...lacking.values()].join('; '));
  const folder = await mkdtemp(join(tmpdir(), 'tributary-interop-'));
  opened(() => rm(folder, { recursive: true, force: true }));
  const server = await startState();
  opened(server.close);
  const state = connect({ url: server.url });
  opened(() => state.close());
  await migrate(state, MIGRATIONS, { schema: 'tributary' });
  const warehouse = join(folder, 'warehouse');
  const createSink = () =>
    createIcebergSink({ name: 'tables', state, warehouse, namespace: NAMESPACE, store: createFolderStore(warehouse) });
  const faults: string[] = [];
  let steps = 0;
  let looks = 0;
  for await (const { step, expected, options } of writeScene(state, createSink)) {
    steps += 1;
    const url = new URL(server.url);
    const input = text({
      ...options,
      namespace: NAMESPACE,
      warehouse: `file://${warehouse}`,
      sqlalchemy: server.url.replace(/^postgres(ql)?:/, 'postgresql+psycopg2:'),
      files: {},
      extensions: ['avro', 'iceberg'],
      duckdb: [],
      jars: JARS,
      spark: {
        '': 'org.apache.iceberg.spark.SparkCatalog',
        '.type': 'jdbc',
        '.uri': `jdbc:postgresql://${url.host}${url.pathname}`,
        '.jdbc.user': decodeURIComponent(url.username),
        '.jdbc.password': decodeURIComponent(url.password),
        '.warehouse': `file://${warehouse}`,
      },
    });
    for (const reader of readers) {
      const out = await must(python, [reader.script], OPTIONS, input);
      const line = out.split('\n').find((one) => one.startsWith('FOUND '));
      if (line === undefined) throw new Error(`${step} · ${reader.name}: it said nothing`);
      const found = JSON.parse(line.slice(6)) as Record<string, unknown>;
      looks += Object.keys(found).length;
      for (const [check, fault] of Object.entries(faultsOf(found, expected)))
        faults.push(`${step} · ${reader.name} · ${check}: ${fault}`);
    }
  }
  mustBeNone(faults, 'readers differ');
  const without = [...lacking].map(([name, why]) => `; ${name} was not asked, ${why}`).join('');
  return {
    versions: await pythonVersions(
      python,
      readers.map(({ name }) => (name === 'Spark' ? 'pyspark' : name.toLowerCase())),
    ),
    result: `${looks} answers over ${steps} steps as they should be${without}`,
  };
}
