import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { MIGRATIONS } from '../../src/cursor/migrations/index.ts';
import { migrate } from '../../src/cursor/migrations/migrate.ts';
import { createIcebergSink } from '../../src/sinks/iceberg/iceberg-sink.ts';
import { createFolderStore } from '../../src/sinks/parquet/store/folder-store.ts';
import { silentLog } from '../support/silent-log.ts';
import { type Expected, NAMESPACE, writeScene } from './scene.ts';

/**
 * `npm run interop:iceberg`: writes tables with everything that readers get wrong, and has them read by pyiceberg, DuckDB and Spark.
 * What the machine lacks is skipped, with the reason. TRIBUTARY_PYTHON is a Python with the packages; TRIBUTARY_SPARK_JARS
 * names the Iceberg runtime and a JDBC driver for Postgres, with commas between them.
 */
const HERE = dirname(fileURLToPath(import.meta.url));
const PYTHON = process.env.TRIBUTARY_PYTHON ?? 'python3';
const JARS = (process.env.TRIBUTARY_SPARK_JARS ?? '').split(',').filter(Boolean);

const READERS = [
  { name: 'pyiceberg', script: 'pyiceberg_reader.py', needs: 'pyiceberg, sqlalchemy, psycopg2, pyarrow' },
  { name: 'DuckDB', script: 'duckdb_reader.py', needs: 'duckdb, duckdb_extension_avro, duckdb_extension_iceberg' },
  { name: 'Spark', script: 'spark_reader.py', needs: 'pyspark' },
] as const;

const CHECKS = ['rows', 'filtered', 'window', 'travelled', 'proven', 'links', 'customers', 'tables', 'partitions'];

const say = (line: string): void => void process.stdout.write(`${line}\n`);

interface Ran {
  code: number | null;
  out: string;
  err: string;
}

function run(command: string, args: readonly string[], input = ''): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: HERE, env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' } });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk) => (out += chunk));
    child.stderr.on('data', (chunk) => (err += chunk));
    child.on('error', (error) => resolve({ code: 127, out, err: String(error) }));
    child.on('close', (code) => resolve({ code, out, err }));
    child.stdin.end(input);
  });
}

async function lacks({ name, needs }: (typeof READERS)[number]): Promise<string | undefined> {
  const { code, err } = await run(PYTHON, ['-c', `import ${needs}`]);
  if (code !== 0) return `${PYTHON} cannot import ${needs}: ${err.trim().split('\n').at(-1)}`;
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

const folder = await mkdtemp(join(tmpdir(), 'tributary-interop-'));
const server = await openEmbedded({ dir: join(folder, 'state'), log: silentLog, command: 'interop' });
const state = connect({ url: server.url });
let isFaulty = false;
try {
  await migrate(state, MIGRATIONS, { schema: 'tributary' });
  const warehouse = join(folder, 'warehouse');
  const createSink = () =>
    createIcebergSink({ name: 'tables', state, warehouse, namespace: NAMESPACE, store: createFolderStore(warehouse) });
  for await (const { step, expected, options } of writeScene(state, createSink)) {
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
    for (const reader of READERS) {
      const missing = await lacks(reader);
      if (missing !== undefined) {
        say(`${step} · ${reader.name}: skipped, ${missing}`);
        continue;
      }
      const { code, out, err } = await run(PYTHON, [reader.script], input);
      const line = out.split('\n').find((one) => one.startsWith('FOUND '));
      if (code !== 0 || !line) {
        isFaulty = true;
        say(`${step} · ${reader.name}: failed\n${err.trim().split('\n').slice(-12).join('\n')}`);
        continue;
      }
      const found = JSON.parse(line.slice(6)) as Record<string, unknown>;
      const faults = faultsOf(found, expected);
      isFaulty ||= Object.keys(faults).length > 0;
      const said = CHECKS.map((check) => `${check} ${faults[check] ?? (check in found ? 'yes' : '–')}`);
      say(`${step} · ${reader.name}: ${said.join(' · ')}`);
    }
  }
} finally {
  await state.close();
  await server.close();
  await rm(folder, { recursive: true, force: true });
}
process.exitCode = isFaulty ? 1 : 0;
