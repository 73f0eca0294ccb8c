import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mustBeNone, openDesk, startService, startState } from '../built.ts';
import { type Found, lastLines, must, type Part, withClosers } from '../part.ts';
import { pythonVersions, pythonWith } from '../tools.ts';
import { foundIn, OPTIONS, PACKAGES } from './iceberg.ts';

/** Others write to our tables. Each act is found by the next sync, named where rows may not be ours, and put right by `verify --repair`. */
interface Act {
  name: string;
  /** What the next sync ends with, and says where it is not complete. */
  code: 0 | 4;
  says?: RegExp;
}

const ACTS: readonly Act[] = [
  { name: 'append', code: 4, says: /2 rows of another writer/ },
  { name: 'append of its own', code: 4, says: /2 rows of another writer/ },
  { name: 'delete', code: 4, says: /that another writer wrote anew/ },
  { name: 'overwrite', code: 4, says: /another writer/ },
  { name: 'new column', code: 0 },
  { name: 'dropped column', code: 0 },
  { name: 'renamed column', code: 0 },
  { name: 'expired snapshots', code: 0 },
];

interface Seen {
  rows: number;
  ids: number;
  cities: number;
  odd: number;
}

const HERE = dirname(fileURLToPath(import.meta.url));

export const icebergWriters: Part = {
  name: 'iceberg-writers',
  checks: 'pyiceberg appends to, deletes from, overwrites and alters our Iceberg tables',
  needs: `Python with ${PACKAGES.join(', ')}`,
  run: () => withClosers(letOthersWrite),
};

async function letOthersWrite(opened: (close: () => unknown) => void): Promise<Found> {
  const python = await pythonWith('iceberg', PACKAGES);
  const service = await startService(
    '--plan',
    'enterprise',
    '--clicks',
    '600',
    '--leads',
    '1',
    '--sales',
    '1',
    '--days',
    '12',
  );
  opened(service.close);
  const faults: string[] = [];
  const table: string[] = [];
  for (const { name, code, says } of ACTS) {
    const server = await startState();
    const desk = await openDesk(`sources:
  main: { baseUrl: "${service.baseUrl}", apiKey: ${service.apiKey}, plan: enterprise, requestsPerSecond: 200, since: 40d, streams: { clicks: { every: 1h } } }
sinks: { tables: { type: iceberg, warehouse: ./warehouse } }
state: { url: "${server.url}" }
`);
    try {
      await desk.done('sync');
      await desk.done('sync');
      const warehouse = `file://${join(desk.dir, 'warehouse')}`;
      const sqlalchemy = server.url.replace(/^postgres(ql)?:/, 'postgresql+psycopg2:');
      const script = join(HERE, 'pyiceberg_writer.py');
      const write = async (act: string): Promise<Seen> =>
        foundIn(await must(python, [script], OPTIONS, JSON.stringify({ act, warehouse, sqlalchemy }))) as Seen;
      const before = await write('look');
      await write(name);
      const synced = await desk.tributary('sync');
      const said = `${synced.out} ${synced.err}`.replace(/\s+/g, ' ');
      if (synced.code !== code || (says && !says.test(said)))
        faults.push(`${name}: sync ended with ${synced.code}: ${lastLines(synced)}`);
      const repaired = await desk.tributary('verify', '--from', '40d', '--to', 'now', '--repair');
      const again = await desk.tributary('sync', '--recount');
      const after = await write('look');
      const isExact = JSON.stringify(after) === JSON.stringify(before);
      if (repaired.code !== 0 || again.code !== 0 || !isExact)
        faults.push(
          `${name}: ${JSON.stringify(after)} instead of ${JSON.stringify(before)}, repair ${repaired.code}, sync ${again.code}: ${lastLines(repaired)} ${lastLines(again)}`,
        );
      table.push(`${name}: sync ${synced.code}, exact after repair`);
    } finally {
      await desk.close();
      await server.close();
    }
  }
  mustBeNone(faults, 'other writers');
  return { versions: await pythonVersions(python, ['pyiceberg', 'pyarrow']), result: table.join('; ') };
}
