import { ConfigError } from '../../../model/errors.ts';
import { groupBy } from '../../files/group-by.ts';
import { currentSnapshot, parseMetadata } from '../format/metadata.ts';
import { locationOf, readIfThere, tableFolder, type Version, type Warehouse } from '../warehouse.ts';

/** A catalog that was restored with an older state names an earlier version; continuing from it would lose later ones. */

/** Longer than a commit takes from writing a version to naming it in the catalog. */
const COMMIT_MS = 2 * 60_000;

const DIGITS = 5;

export const versionOf = (location: string): number | undefined => {
  const digits = /\/(\d+)-[^/]+\.metadata\.json$/.exec(location)?.[1];
  return digits === undefined ? undefined : Number(digits);
};

export const versionName = (version: number, uuid: string): string =>
  `${String(version).padStart(DIGITS, '0')}-${uuid}.metadata.json`;

const metadataFolder = (warehouse: Warehouse, table: string): string => `${tableFolder(warehouse, table)}/metadata`;

/** The newest version, if the one at this location is gone or has a successor that is too old to be a commit in progress. */
export async function findNewer(warehouse: Warehouse, table: string, location: string): Promise<Version | undefined> {
  const current = await readVersion(warehouse, location);
  if (!current) return newestOf(warehouse, table);
  const version = versionOf(location);
  if (version === undefined) return undefined;
  const next = versionName(version + 1, '').slice(0, DIGITS + 1);
  for await (const { modifiedAt } of warehouse.store.list(metadataFolder(warehouse, table), next))
    if (modifiedAt < Date.now() - COMMIT_MS) return newestOf(warehouse, table, current);
  return undefined;
}

/** The readable version with the highest number, of several the latest; of the same table as `than` and newer. */
export async function newestOf(warehouse: Warehouse, table: string, than?: Version): Promise<Version | undefined> {
  const paths: string[] = [];
  for await (const { path } of warehouse.store.list(metadataFolder(warehouse, table)))
    if (versionOf(path) !== undefined) paths.push(path);
  const byVersion = groupBy(paths, (path) => Number(versionOf(path)));
  const isNewer = ({ metadata }: Version): boolean =>
    !than ||
    (metadata['table-uuid'] === than.metadata['table-uuid'] &&
      metadata['last-updated-ms'] > than.metadata['last-updated-ms']);
  for (const [, paths] of [...byVersion].sort(([a], [b]) => b - a)) {
    const found = await Promise.all(paths.map((path) => readVersion(warehouse, locationOf(warehouse, path))));
    const newer = found.filter((one) => one !== undefined).filter(isNewer);
    newer.sort((a, b) => b.metadata['last-updated-ms'] - a.metadata['last-updated-ms']);
    for (const one of newer) if (await isReadable(warehouse, one)) return one;
  }
  return undefined;
}

export async function readVersion(warehouse: Warehouse, location: string): Promise<Version | undefined> {
  const bytes = await readIfThere(warehouse, location);
  return bytes && { location, metadata: parseMetadata(bytes.toString('utf8')) };
}

/** Files of a version that was never committed may have been removed. */
async function isReadable(warehouse: Warehouse, { metadata }: Version): Promise<boolean> {
  const snapshot = currentSnapshot(metadata);
  return !snapshot || (await readIfThere(warehouse, snapshot['manifest-list'])) !== undefined;
}

const READS_AGAIN = 'and reads again what is missing in it';

export const missingMetadata = ({ name, namespace }: Warehouse, table: string, location: string, newest?: Version) =>
  new ConfigError(`the catalog says that the metadata of ${namespace}.${table} is at ${location}, which is not there`, {
    where: { sink: name },
    kept: 'the catalog and the files as they are',
    next: newest
      ? `run tributary sync: it continues with the newest version that exists, ${newest.location}, ${READS_AGAIN}`
      : 'bring the warehouse back from a backup; or drop the table from the catalog, and sync fills a new one',
  });

/** For `doctor`: the next run moves to the newest version. */
export const staleCatalog = ({ name, namespace }: Warehouse, table: string, { location }: Version): ConfigError =>
  new ConfigError(`the catalog names an earlier version of ${namespace}.${table} than the newest, ${location}`, {
    where: { sink: name },
    kept: 'the catalog and the files as they are; the state was restored, or a commit was interrupted',
    next: `run tributary sync: it continues with the newest version, ${READS_AGAIN}`,
  });
