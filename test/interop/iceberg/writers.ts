import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DAY_MS } from '../../../src/model/window.ts';
import { mustBeNone, openDesk, type Service, startService, startStateOnPort } from '../built.ts';
import { type Found, lastLines, must, type Part, withClosers } from '../part.ts';
import { pythonVersions, pythonWith } from '../tools.ts';
import { foundIn, lacksSpark, OPTIONS, PACKAGES, sparkCatalog } from './iceberg.ts';

/** Others write to our tables. Each act is found by the next sync, named where rows may not be ours, and put right by `verify --repair`. */
interface Act {
  by: 'pyiceberg' | 'Spark';
  name: string;
  /** What the next sync ends with, and says where it is not complete. */
  code: 0 | 4;
  says?: RegExp;
}

const ACTS: readonly Act[] = [
  { by: 'pyiceberg', name: 'append', code: 4, says: /2 rows of another writer/ },
  { by: 'pyiceberg', name: 'append of its own', code: 4, says: /2 rows of another writer/ },
  { by: 'pyiceberg', name: 'delete', code: 4, says: /that another writer wrote anew/ },
  { by: 'pyiceberg', name: 'overwrite', code: 4, says: /another writer/ },
  { by: 'pyiceberg', name: 'new column', code: 0 },
  { by: 'pyiceberg', name: 'dropped column', code: 0 },
  { by: 'pyiceberg', name: 'renamed column', code: 0 },
  { by: 'pyiceberg', name: 'expired snapshots', code: 0 },
  { by: 'Spark', name: 'insert', code: 4, says: /2 rows of another writer/ },
  { by: 'Spark', name: 'delete', code: 4, says: /that another writer wrote anew/ },
  { by: 'Spark', name: 'delete, merge on read', code: 4, says: /1 delete file of another writer/ },
  { by: 'Spark', name: 'rewrite_data_files', code: 0 },
  { by: 'Spark', name: 'expire_snapshots', code: 0 },
  // What is gone is read again at once.
  { by: 'Spark', name: 'rollback_to_snapshot', code: 0, says: /emptied, restored or replaced/ },
];

const HERE = dirname(fileURLToPath(import.meta.url));

export const icebergWriters: Part = {
  name: 'iceberg-writers',
  checks:
    'pyiceberg and Spark append to, delete from, overwrite, alter, compact, expire and roll back our Iceberg tables',
  needs: `Python with ${PACKAGES.join(', ')}; Java and TRIBUTARY_SPARK_JARS for Spark; Postgres in /usr/lib/postgresql`,
  run: () => withClosers(letOthersWrite),
};

async function letOthersWrite(opened: (close: () => unknown) => void): Promise<Found> {
  const python = await pythonWith('iceberg', PACKAGES);
  const amounts = ['--clicks', '600', '--leads', '1', '--sales', '1', '--days', '12'];
  const service = await startService('--plan', 'enterprise', ...amounts);
  opened(service.close);
  const without = await lacksSpark(python);
  const acts = ACTS.filter(({ by }) => by === 'pyiceberg' || without === undefined);
  const tried: Tried[] = [];
  for (const act of acts) tried.push(await tryAct(python, service, act));
  mustBeNone(
    tried.flatMap(({ faults }) => faults),
    'other writers',
  );
  const spark = without === undefined ? ['pyspark'] : [];
  return {
    versions: await pythonVersions(python, ['pyiceberg', 'pyarrow', ...spark]),
    result: `${acts.length} acts found and put right${without === undefined ? '' : `; Spark did nothing, ${without}`}`,
    table: [
      '| writer | act on `attribution.clicks` | what the next `sync` said | after `verify --repair` |',
      '|---|---|---|---|',
      ...tried.map(({ row }) => row),
    ].join('\n'),
  };
}

interface Tried {
  faults: string[];
  row: string;
}

async function tryAct(python: string, service: Service, { by, name, code, says }: Act): Promise<Tried> {
  const server = await startStateOnPort();
  const desk = await openDesk(`sources:
  main: { baseUrl: "${service.baseUrl}", apiKey: ${service.apiKey}, plan: enterprise, requestsPerSecond: 200, since: 13d, streams: { clicks: { every: 1h } } }
sinks: { tables: { type: iceberg, warehouse: ./warehouse } }
state: { url: "${server.url}" }
`);
  const warehouse = `file://${join(desk.dir, 'warehouse')}`;
  const sqlalchemy = server.url.replace(/^postgres(ql)?:/, 'postgresql+psycopg2:');
  const input = { warehouse, sqlalchemy, ...sparkCatalog(server.url, warehouse) };
  const write = async (script: string, act: string): Promise<unknown> =>
    foundIn(await must(python, [join(HERE, script)], OPTIONS, JSON.stringify({ act, ...input })));
  const look = async (): Promise<string> => JSON.stringify(await write('pyiceberg_writer.py', 'look'));
  const faults: string[] = [];
  try {
    await desk.done('sync');
    // A second snapshot, so that there is one to go back to, with rows that are certified.
    await service.arrive('clicks', 5, { from: Date.now() - 5 * DAY_MS, to: Date.now() - 4 * DAY_MS });
    await desk.done('backfill', 'clicks', '--from', '6d', '--to', '3d', '--force');
    const before = await look();
    await write(by === 'Spark' ? 'spark_writer.py' : 'pyiceberg_writer.py', name);
    const synced = await desk.tributary('sync');
    const said = `${synced.out} ${synced.err}`.replace(/\s+/g, ' ');
    if (synced.code !== code || (says && !says.test(said)))
      faults.push(`${name}: sync ended with ${synced.code}: ${lastLines(synced)}`);
    const repaired = await desk.tributary('verify', '--from', '13d', '--to', 'now', '--repair');
    const again = await desk.tributary('sync', '--recount');
    const after = await look();
    const isExact = repaired.code === 0 && again.code === 0 && after === before;
    if (!isExact)
      faults.push(
        `${name}: ${after} instead of ${before}, repair ${repaired.code}, sync ${again.code}: ${lastLines(repaired)} ${lastLines(again)}`,
      );
    // Without the name of the file, which is another one every time.
    const [heard = 'nothing, since no row was changed'] =
      /attribution\.clicks holds [^;.]*?(?= \(\d{5}-|;|\.|$)/.exec(said) ?? [];
    return { faults, row: `| ${by} | ${name} | exit ${synced.code}: ${heard} | ${isExact ? 'exact' : 'NOT exact'} |` };
  } finally {
    await desk.close();
    await server.close();
  }
}
