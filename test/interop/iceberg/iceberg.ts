import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect } from '../../../src/cursor/database/index.ts';
import { MIGRATIONS } from '../../../src/cursor/migrations/index.ts';
import { migrate } from '../../../src/cursor/migrations/migrate.ts';
import { DAY_MS } from '../../../src/model/window.ts';
import { createFolderStore } from '../../../src/sinks/files/store/folder-store.ts';
import { createIcebergSink } from '../../../src/sinks/iceberg/iceberg-sink.ts';
import { MAINTENANCE } from '../../../src/sinks/iceberg/maintain.ts';
import { mustBeNone, startStateOnPort } from '../built.ts';
import { type Found, Missing, must, type Part, run, withClosers } from '../part.ts';
import { pythonVersions, pythonWith } from '../tools.ts';
import { type Busy, type Expected, keepWriting, NAMESPACE, writeScene } from './scene.ts';

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

export const OPTIONS = { cwd: HERE, env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' } };

export const PACKAGES = [
  'pyiceberg[sql-postgres,pyarrow,pyiceberg-core]',
  'duckdb',
  'duckdb-extension-avro',
  'duckdb-extension-iceberg',
  // DuckDB wants it for times with a zone, and does not bring it.
  'pytz',
  'pyspark==4.0.1',
];

export const iceberg: Part = {
  name: 'iceberg',
  checks:
    'Iceberg tables with extremes, changes, new and widened columns, read by others, also while they are written and joined',
  needs: `Python with ${PACKAGES.join(', ')}; Java and TRIBUTARY_SPARK_JARS for Spark; Postgres in /usr/lib/postgresql`,
  run: () => withClosers(readTables),
};

/** Spark's settings for the catalog in a state database. */
export function sparkCatalog(postgres: string, warehouse: string): object {
  const url = new URL(postgres);
  return {
    jars: JARS,
    spark: {
      '': 'org.apache.iceberg.spark.SparkCatalog',
      '.type': 'jdbc',
      '.uri': `jdbc:postgresql://${url.host}${url.pathname}`,
      '.jdbc.user': decodeURIComponent(url.username),
      '.jdbc.password': decodeURIComponent(url.password),
      '.warehouse': warehouse,
      // Otherwise a session that asks again and again is answered from the table as it was at first, until its files are gone.
      '.cache-enabled': 'false',
    },
  };
}

export const lacksSpark = (python: string): Promise<string | undefined> => lacks(python, READERS[2]);

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

/** What a script found, of all that it printed. */
export function foundIn(out: string): unknown {
  const line = out.split('\n').find((one) => one.startsWith('FOUND '));
  if (line === undefined) throw new Error(`it found nothing: ${out}`);
  return JSON.parse(line.slice(6));
}

interface Watched {
  reads: number;
  wrong: string[];
  failed: string[];
  rows: number;
}

/** At least so long, and until files that were joined have been removed. */
const BUSY_MS = 120_000;
const LONGEST_MS = 300_000;

/** Readers that read again and again while tables are written, joined and expired: no answer is wrong, and none fails. */
async function readWhileWriting(
  folder: string,
  readers: readonly Reader[],
  writing: AsyncIterable<Busy>,
  watch: (reader: Reader, stop: string) => Promise<Watched>,
): Promise<string> {
  const stop = join(folder, 'stop');
  const began = Date.now();
  let watching: Promise<Watched[]> | undefined;
  let last: Busy | undefined;
  try {
    for await (const busy of writing) {
      last = busy;
      watching ??= Promise.all(readers.map((reader) => watch(reader, stop)));
      const took = Date.now() - began;
      if (took > LONGEST_MS || (took > BUSY_MS && busy.removed > 0)) break;
    }
  } finally {
    await writeFile(stop, '');
  }
  const watched = (await watching) ?? [];
  const faults = watched.flatMap(({ wrong, failed, reads, rows }, i) => [
    ...[...wrong, ...failed].map((fault) => `${readers[i]?.name}: ${fault}`),
    ...(reads < 3 || rows === 0 ? [`${readers[i]?.name}: it read ${reads} times`] : []),
  ]);
  if (!last?.joined || !last.removed) faults.push(`nothing was joined and removed: ${text(last)}`);
  mustBeNone(faults, 'reading while writing');
  const reads = watched.map(({ reads: times }, i) => `${readers[i]?.name} read ${times} times`);
  return `${reads.join(', ')}, while ${last?.rows} rows were written, ${last?.joined} files joined, ${last?.expired} snapshots expired and ${last?.removed} files removed`;
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
  const server = await startStateOnPort();
  opened(server.close);
  const state = connect({ url: server.url });
  opened(() => state.close());
  await migrate(state, MIGRATIONS, { schema: 'tributary' });
  const warehouse = join(folder, 'warehouse');
  const createSink = (namespace = NAMESPACE, maintenance = MAINTENANCE) =>
    createIcebergSink({
      ...{ name: 'tables', state, readAgainMs: () => 4 * DAY_MS, warehouse, namespace },
      ...{ maintenance, store: createFolderStore(warehouse) },
    });
  const where = {
    namespace: NAMESPACE,
    warehouse: `file://${warehouse}`,
    sqlalchemy: server.url.replace(/^postgres(ql)?:/, 'postgresql+psycopg2:'),
    extensions: ['avro', 'iceberg'],
    ...sparkCatalog(server.url, `file://${warehouse}`),
  };
  const faults: string[] = [];
  let steps = 0;
  let looks = 0;
  for await (const { step, expected, options } of writeScene(state, createSink)) {
    steps += 1;
    const input = text({ ...options, ...where });
    for (const reader of readers) {
      const found = foundIn(await must(python, [reader.script], OPTIONS, input)) as Record<string, unknown>;
      looks += Object.keys(found).length;
      for (const [check, fault] of Object.entries(faultsOf(found, expected)))
        faults.push(`${step} · ${reader.name} · ${check}: ${fault}`);
    }
  }
  mustBeNone(faults, 'readers differ');
  // Time travel is cut to less than a minute, so that files go away while others are being read.
  const busySink = createSink('busy', {
    ...MAINTENANCE,
    keep: { all: 45_000, hourly: 45_000, daily: 45_000, most: 500 },
    orphanMs: 45_000,
    versionsMs: 45_000,
  });
  const watched = await readWhileWriting(folder, readers, keepWriting(state, busySink), async ({ name }, stop) => {
    const input = text({ ...where, namespace: 'busy', postgres: server.url, reader: name, stop, hold: 8 });
    return foundIn(await must(python, ['watching_reader.py'], OPTIONS, input)) as Watched;
  });
  const without = [...lacking].map(([name, why]) => `; ${name} was not asked, ${why}`).join('');
  return {
    versions: await pythonVersions(
      python,
      readers.map(({ name }) => (name === 'Spark' ? 'pyspark' : name.toLowerCase())),
    ),
    result: `${looks} answers over ${steps} steps as they should be; ${watched}${without}`,
  };
}
