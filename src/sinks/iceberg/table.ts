import { randomUUID } from 'node:crypto';
import type { Queryable } from '../../cursor/database/index.ts';
import { ConfigError } from '../../model/errors.ts';
import { DAY_MS } from '../../model/window.ts';
import type { FileColumn } from '../parquet/format/index.ts';
import { fileName } from '../parquet/lake.ts';
import { type DataFile, decodeManifest, type Entry } from './format/manifest.ts';
import { decodeManifestList, type Manifest } from './format/manifest-list.ts';
import { currentSnapshot, type Metadata, type PartitionSpec, presentColumns } from './format/metadata.ts';
import { columnsIn, type Design } from './format/schema.ts';
import { type Listed, readBytes, tableFolder, type Warehouse } from './warehouse.ts';

/** A table in one of its versions. */
export interface Table extends Listed {
  design: Design;
  columns: readonly FileColumn[];
  manifests: readonly Manifest[];
}

/** Days from 1970, both ends included. */
export interface DayRange {
  first: number;
  last: number;
}

/** A file of the present snapshot, and the manifest that names it. */
export interface TableFile extends Entry {
  manifest: Manifest;
}

export async function loadTable(tx: Queryable, warehouse: Warehouse, design: Design): Promise<Table | undefined> {
  const listed = await warehouse.catalog.load(tx, warehouse, design.name);
  return listed && openTable(warehouse, design, listed);
}

async function openTable(warehouse: Warehouse, design: Design, listed: Listed): Promise<Table> {
  const { metadata } = listed;
  const snapshot = currentSnapshot(metadata);
  const manifests = snapshot ? decodeManifestList(await readBytes(warehouse, snapshot['manifest-list'])) : [];
  const foreign = manifests.find(({ content, specId }) => content !== 'data' || specId !== metadata['default-spec-id']);
  if (foreign) throw changedByOthers(warehouse, design.name);
  return { ...listed, design, columns: columnsIn(presentColumns(metadata)), manifests };
}

const changedByOthers = ({ name, namespace }: Warehouse, table: string): ConfigError =>
  new ConfigError(`another program wrote delete files into ${namespace}.${table}, or partitioned it anew`, {
    where: { sink: name },
    kept: 'the table as it is',
    next: 'rewrite its data files without deletes and by day(timestamp); only Tributary should write to this table',
  });

/** Where a new file of a source goes. */
export function newDataPath(warehouse: Warehouse, { design }: Table, source: string, day: number | undefined): string {
  const date = day === undefined ? '' : `/${design.sortedBy}_day=${new Date(day * DAY_MS).toISOString().slice(0, 10)}`;
  return `${tableFolder(warehouse, design.name)}/data${date}/${fileName(`${source}-${randomUUID()}`)}`;
}

/** Whose rows a file holds: a file has those of one source. Undefined for a file that somebody else wrote. */
export const sourceOf = ({ path }: DataFile): string | undefined =>
  /\/([^/]+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.parquet$/.exec(path)?.[1];

/** The files of a source, of some days where they are given. */
export async function filesOf(
  warehouse: Warehouse,
  table: Table,
  { source, days }: { source?: string; days?: readonly DayRange[] },
): Promise<TableFile[]> {
  const found: TableFile[] = [];
  const isMeant = ({ first, last }: DayRange): boolean =>
    days === undefined || days.some((range) => range.first <= last && first <= range.last);
  for (const manifest of table.manifests) {
    if (manifest.days && !isMeant(manifest.days)) continue;
    for (const entry of await manifestFiles(warehouse, table.metadata, manifest)) {
      const { day } = entry.file;
      if (day !== undefined && !isMeant({ first: day, last: day })) continue;
      const owner = sourceOf(entry.file);
      if (source === undefined || owner === undefined || owner === source) found.push({ ...entry, manifest });
    }
  }
  return found;
}

export const specOf = (metadata: Metadata): PartitionSpec =>
  metadata['partition-specs'].find((spec) => spec['spec-id'] === metadata['default-spec-id']) ?? {
    'spec-id': 0,
    fields: [],
  };

/** The files that a manifest names and that are still there. */
export async function manifestFiles(warehouse: Warehouse, metadata: Metadata, manifest: Manifest): Promise<Entry[]> {
  const entries = decodeManifest(await readBytes(warehouse, manifest.path), specOf(metadata), manifest);
  return entries.filter(({ status }) => status !== 'deleted');
}
