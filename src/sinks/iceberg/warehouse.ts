import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { sql } from '../../cursor/database/sql.ts';
import { ConfigError } from '../../model/errors.ts';
import type { Stream } from '../../model/streams.ts';
import { DAY_MS, type Window } from '../../model/window.ts';
import { type Change, type Commit, inChange } from '../files/change.ts';
import type { FileSink } from '../files/commit.ts';
import { fileName, readSmall, type Staged, writeSmall } from '../files/store/store.ts';
import type { FileColumn } from '../parquet/format/index.ts';
import { ShapeChanged } from '../sink.ts';
import type { Design } from '../table-columns.ts';
import { decodeManifest, type Entry } from './format/manifest.ts';
import type { ManifestCache } from './format/manifest-cache.ts';
import { decodeManifestList, type Manifest } from './format/manifest-list.ts';
import { currentSnapshot, type Metadata, type PartitionSpec, presentColumns } from './format/metadata.ts';
import { columnsIn } from './format/schema.ts';

export interface Warehouse extends FileSink {
  /** The URL of the store's folder or bucket: `file:///…` or `s3://…`, without a trailing slash. */
  uri: string;
  namespace: string;
  catalog: Catalog;
  manifests: ManifestCache;
}

/** The catalog name under which readers find tables in the state's database. */
export const CATALOG = 'tributary';

/** A version of a table, as the catalog returns it. */
export interface Version {
  /** The location of the metadata file, which is new with every change. */
  location: string;
  metadata: Metadata;
}

/** Decides which version of a table is current. */
export interface Catalog {
  /** Whether the catalog changes in the state's transactions. If not, a table may be ahead of the state. */
  readonly isInState: boolean;
  load(warehouse: Warehouse, table: string): Promise<Version | undefined>;
  create(draft: Draft, design: Design): Promise<Version>;
  /** Replaces the version `before`. Throws, and changes nothing, if another version is current by now. */
  replace(draft: Draft, table: string, before: Version, metadata: Metadata): Promise<Version>;
  /** The newest version in the table's folder, if the catalog's version is gone or older, because catalog or folder was restored. */
  findNewer?(warehouse: Warehouse, table: string): Promise<Version | undefined>;
  /** Moves the catalog to that version. Returns whether there is one. */
  recover?(warehouse: Warehouse, table: string): Promise<boolean>;
}

/** Serializes commits, compaction and erasure of a table. */
export const tableLock = ({ namespace }: Warehouse, table: string): string => `iceberg ${namespace}.${table}`;

/** Files have absolute URLs, because readers would resolve a relative path against their own directory. */
export const warehouseUri = (path: string): string =>
  path.startsWith('s3://') ? path.replace(/\/+$/, '') : `file://${resolve(path)}`;

export const locationOf = ({ uri }: Warehouse, path: string): string => `${uri}/${path}`;

/** Java writes file:/ with one to three slashes. */
const addressOf = (location: string): string => location.replace(/^file:\/+/, 'file:///');

/** Other writers may keep files of a table elsewhere. */
export const isBelow = ({ uri }: Warehouse, location: string): boolean => addressOf(location).startsWith(`${uri}/`);

export function pathOf(warehouse: Warehouse, location: string): string {
  const { uri, name } = warehouse;
  if (isBelow(warehouse, location)) return addressOf(location).slice(uri.length + 1);
  throw new ConfigError(`the catalog says that a file is at ${location}, which is not below ${uri}`, {
    where: { sink: name },
    kept: 'everything; nothing was read or written there',
    next: 'give the sink the warehouse that its tables were made in; tables cannot be moved by moving their files',
  });
}

export const tableFolder = ({ namespace }: Warehouse, table: string): string => `${namespace}/${table}`;

/** A change with new files, which readers do not see before the catalog refers to them, and which are removed if that fails. */
export interface Draft extends Change {
  warehouse: Warehouse;
  made: string[];
}

/** Runs a change under the lock of a table. If it fails, its new files are removed. */
export async function inDraft<T>(
  warehouse: Warehouse,
  table: string,
  work: (draft: Draft) => Promise<T>,
  commit: Commit = (write) => warehouse.state.transaction(write),
): Promise<T> {
  const made: string[] = [];
  const orRemove = async <R>(step: Promise<R>): Promise<R> => {
    try {
      return await step;
    } catch (error) {
      // Recovery: the caller's. If it is unknown whether a COMMIT took effect, the files stay; `maintain` removes orphans.
      for (const path of made) await warehouse.store.remove(path).catch(() => undefined);
      throw error;
    }
  };
  return inChange(
    warehouse.state,
    tableLock(warehouse, table),
    (change) => orRemove(work({ ...change, warehouse, made })),
    (write) => commit((tx) => orRemove(write(tx))),
  );
}

export async function stageFile({ warehouse, made }: Draft, path: string): Promise<Staged> {
  const staged = await warehouse.store.stage(path);
  made.push(path);
  return staged;
}

export async function createFile(draft: Draft, path: string, bytes: Buffer): Promise<void> {
  await writeSmall(await stageFile(draft, path), bytes);
}

export async function readBytes(warehouse: Warehouse, location: string): Promise<Buffer> {
  const bytes = await readIfThere(warehouse, location);
  if (bytes) return bytes;
  throw new ConfigError(`${location} belongs to an Iceberg table and is not there`, {
    where: { sink: warehouse.name },
    kept: 'the catalog as it is',
    next: 'bring the warehouse back from a backup; or drop the table from the catalog, and sync fills a new one',
  });
}

export const readIfThere = async (warehouse: Warehouse, location: string): Promise<Buffer | undefined> =>
  (await readSmall(warehouse.store, pathOf(warehouse, location)))?.bytes;

export interface Table extends Version {
  warehouse: Warehouse;
  design: Design;
  columns: readonly FileColumn[];
  manifests: readonly Manifest[];
  /** Manifests of delete files, all by other programs: we rewrite data files instead. */
  deletes: readonly Manifest[];
}

export interface EventsOf {
  stream: Stream;
  source: string;
}

/** Days from 1970, both ends included. */
export interface DayRange {
  first: number;
  last: number;
}

/** A file of the current snapshot, and the manifest that lists it. */
export interface TableFile extends Entry {
  manifest: Manifest;
  /** The source of all rows in a file of ours. Undefined for a foreign file. */
  source: string | undefined;
}

export async function loadTable(warehouse: Warehouse, design: Design): Promise<Table | undefined> {
  const listed = await warehouse.catalog.load(warehouse, design.name);
  if (!listed) return undefined;
  const { metadata } = listed;
  const snapshot = currentSnapshot(metadata);
  const all = snapshot ? decodeManifestList(await readBytes(warehouse, snapshot['manifest-list'])) : [];
  // Another program may have repartitioned the table: then the bounds in its manifests are not days.
  const live = all.map((manifest) => (manifest.specId === OWN_SPEC ? manifest : { ...manifest, days: undefined }));
  return {
    ...listed,
    warehouse,
    design,
    columns: columnsIn(presentColumns(metadata)),
    manifests: live.filter(({ content }) => content === 'data'),
    deletes: live.filter(({ content }) => content === 'deletes'),
  };
}

/** Throws if another process dropped the table since it was prepared. */
export async function preparedTable(warehouse: Warehouse, design: Design): Promise<Table> {
  const table = await loadTable(warehouse, design);
  if (!table) throw new ShapeChanged(`${warehouse.namespace}.${design.name}`, {});
  return table;
}

export function newDataPath({ warehouse, design }: Table, source: string, day: number | undefined): string {
  const date = day === undefined ? '' : `/${design.sortedBy}_day=${new Date(day * DAY_MS).toISOString().slice(0, 10)}`;
  return `${tableFolder(warehouse, design.name)}/data${date}/${fileName(`${source}-${randomUUID()}.tributary`)}`;
}

/** Earlier versions named files without the suffix, as other programs may: such a file is ours only if it names a source of this sink. */
const NAME = /\/([^/]+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.tributary)?\.parquet$/;

export async function writtenSources({ warehouse: { name, state } }: Table): Promise<Set<string>> {
  const found = await state.query<{ source: string }>(
    sql`select distinct source from tributary.lake_tracks where sink = ${name}`,
  );
  return new Set(found.map(({ source }) => source));
}

/** The files of a source and foreign files, which may hold its rows; limited to `days` if given. */
export async function filesOf(table: Table, { source, days }: { source?: string; days?: readonly DayRange[] }) {
  const found: TableFile[] = [];
  let written: Set<string> | undefined;
  const overlaps = ({ first, last }: DayRange): boolean =>
    days === undefined || days.some((range) => range.first <= last && first <= range.last);
  for (const manifest of table.manifests) {
    if (manifest.days && !overlaps(manifest.days)) continue;
    for (const entry of await manifestFiles(table.warehouse, table.metadata, manifest)) {
      const { day } = entry.file;
      if (day !== undefined && !overlaps({ first: day, last: day })) continue;
      const [, name, suffix] = NAME.exec(entry.file.path) ?? [];
      if (name !== undefined && !suffix) written ??= await writtenSources(table);
      const owner = name === undefined || suffix || written?.has(name) ? name : undefined;
      if (source === undefined || owner === undefined || owner === source)
        found.push({ ...entry, manifest, source: owner });
    }
  }
  return found;
}

/** The partition spec that we created the table with and write with, whatever other programs added. */
export const specOf = (metadata: Metadata): PartitionSpec => specBy(metadata, OWN_SPEC);

export const OWN_SPEC = 0;

const specBy = (metadata: Metadata, id: number): PartitionSpec =>
  metadata['partition-specs'].find((spec) => spec['spec-id'] === id) ?? { 'spec-id': id, fields: [] };

export async function manifestFiles(warehouse: Warehouse, metadata: Metadata, manifest: Manifest): Promise<Entry[]> {
  const spec = specBy(metadata, manifest.specId);
  const entries = await warehouse.manifests.read(manifest.path, async () =>
    decodeManifest(await readBytes(warehouse, manifest.path), spec, manifest),
  );
  const live = entries.filter(({ status }) => status !== 'deleted');
  if (spec['spec-id'] === OWN_SPEC) return live;
  return live.map((entry) => ({ ...entry, file: { ...entry.file, day: undefined } }));
}

export const dayRangeOf = ({ start, end }: Window): DayRange => ({
  first: Math.floor(start / DAY_MS),
  last: Math.floor((end - 1) / DAY_MS),
});
