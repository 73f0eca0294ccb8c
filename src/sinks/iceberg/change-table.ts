import { randomUUID } from 'node:crypto';
import type { Long } from './format/avro.ts';
import { type DataFile, type Entry, encodeManifest } from './format/manifest.ts';
import { encodeManifestList, liveFiles, type Manifest } from './format/manifest-list.ts';
import {
  currentSnapshot,
  newSnapshotId,
  presentColumns,
  type Snapshot,
  withColumns,
  withoutSnapshots,
  withSnapshot,
} from './format/metadata.ts';
import { columnsIn, type Evolved } from './format/schema.ts';
import { OURS } from './heads.ts';
import { provenOf, statesProgress, summaryOf, withProgress } from './upkeep/progress.ts';
import {
  createFile,
  type Draft,
  locationOf,
  manifestFiles,
  OWN_SPEC,
  specOf,
  type Table,
  type TableFile,
  tableFolder,
  type Warehouse,
} from './warehouse.ts';

/** Manifests with fewer files than this are merged once there are `MOST_SMALL` of them, because readers open each. */
const SMALL_FILES = 100;
const MOST_SMALL = 16;

export interface NewFile {
  file: DataFile;
  source: string;
}

export interface Change {
  added: readonly NewFile[];
  removed: readonly TableFile[];
  /** Overrides the operation that follows from the files. */
  operation?: 'overwrite' | 'replace';
  /** The sources whose progress the snapshot's summary states. Default: those whose files change. */
  sources?: readonly string[];
  evolved?: Evolved;
  /** Manifests of other writers' delete files that stay. Default: all. */
  deletes?: readonly Manifest[];
  /** The snapshots to expire, besides the one that this change makes. */
  isExpired?(snapshot: Snapshot): boolean;
}

export async function changeTable(draft: Draft, table: Table, change: Change): Promise<Table> {
  const { added, removed, evolved, deletes = table.deletes, isExpired } = change;
  const { warehouse } = draft;
  const { design } = table;
  const metadata = evolved ? withColumns(table.metadata, evolved) : table.metadata;
  const operation = added.length === 0 ? 'delete' : removed.length === 0 ? 'append' : 'overwrite';
  const sources = new Set([...added, ...removed].flatMap(({ source }) => source ?? []));
  const proven = statesProgress(design) ? await draft.foresee((db) => provenOf(db, warehouse, design)) : undefined;
  const parent = currentSnapshot(metadata);
  const id = newSnapshotId();
  const sequence = metadata['last-sequence-number'] + 1;
  const write = createManifestWriter(draft, { ...table, metadata }, id, sequence);
  const data = await withoutFiles(warehouse, { ...table, metadata }, removed, id, write);
  const isNew = { status: 'added', snapshotId: id, sequence: undefined, fileSequence: undefined } as const;
  if (added.length > 0) data.push(await write(added.map(({ file }) => ({ ...isNew, file }))));
  const list = `${tableFolder(warehouse, design.name)}/metadata/snap-${id}-1-${randomUUID()}.avro`;
  const parentId = parent?.['snapshot-id'];
  await createFile(draft, list, encodeManifestList({ snapshotId: id, parentId, sequence }, [...data, ...deletes]));
  const snapshot: Snapshot = {
    'snapshot-id': id,
    ...(parentId !== undefined && { 'parent-snapshot-id': parentId }),
    'sequence-number': sequence,
    'timestamp-ms': Math.max(Date.now(), metadata['last-updated-ms'] + 1),
    'manifest-list': locationOf(warehouse, list),
    summary: {
      ...{ operation: change.operation ?? operation, ...OURS },
      ...(proven && summaryOf(proven, change.sources ?? [...sources])),
      ...figuresOf(parent, { added, removed, deletes }),
    },
    'schema-id': metadata['current-schema-id'],
  };
  const next = withoutSnapshots(
    withSnapshot(proven ? withProgress(metadata, proven) : metadata, snapshot),
    (one) => one !== snapshot && (isExpired?.(one) ?? false),
  );
  const listed = await warehouse.catalog.replace(draft, design.name, table, next);
  return { ...table, ...listed, columns: columnsIn(presentColumns(next)), manifests: data, deletes };
}

type WriteManifest = (entries: readonly Entry[]) => Promise<Manifest>;

function createManifestWriter(
  draft: Draft,
  { design, metadata }: Pick<Table, 'design' | 'metadata'>,
  id: Long,
  sequence: number,
): WriteManifest {
  const { schema } = presentColumns(metadata);
  const spec = specOf(metadata);
  return async (entries) => {
    const path = `${tableFolder(draft.warehouse, design.name)}/metadata/${randomUUID()}-m0.avro`;
    const bytes = encodeManifest(schema, spec, entries);
    await createFile(draft, path, bytes);
    const count = (status: Entry['status']) => {
      const files = entries.filter((entry) => entry.status === status);
      return { files: files.length, rows: files.reduce((sum, { file }) => sum + file.rows, 0) };
    };
    const days = entries.flatMap(({ file }) => file.day ?? []);
    const sequences = entries
      .filter(({ status }) => status !== 'deleted')
      .map((entry) => Number(entry.sequence ?? sequence));
    return {
      path: locationOf(draft.warehouse, path),
      bytes: bytes.length,
      content: 'data',
      specId: spec['spec-id'],
      sequence,
      minSequence: Math.min(sequence, ...sequences),
      snapshotId: id,
      added: count('added'),
      existing: count('existing'),
      deleted: count('deleted'),
      days: days.length === 0 ? undefined : { first: Math.min(...days), last: Math.max(...days) },
    };
  };
}

/** Rewrites the manifests that list a removed file into one; if there are many small manifests, those too. */
async function withoutFiles(
  warehouse: Warehouse,
  { metadata, manifests }: Pick<Table, 'metadata' | 'manifests'>,
  removed: readonly TableFile[],
  id: Long,
  write: WriteManifest,
): Promise<Manifest[]> {
  const gone = new Set(removed.map(({ file }) => file.path));
  const live = manifests.filter((one) => liveFiles(one) > 0);
  const isOwn = ({ specId }: Manifest): boolean => specId === OWN_SPEC;
  const small = live.filter((one) => isOwn(one) && liveFiles(one) < SMALL_FILES);
  const rewritten = new Set(removed.map(({ manifest }) => manifest.path));
  if (small.length >= MOST_SMALL) for (const { path } of small) rewritten.add(path);
  const entries: Entry[] = [];
  // A manifest of another partition spec is dropped whole: its files are always removed together.
  for (const manifest of live.filter((one) => rewritten.has(one.path) && isOwn(one))) {
    for (const { file, ...entry } of await manifestFiles(warehouse, metadata, manifest)) {
      entries.push(
        gone.has(file.path)
          ? // The bounds of a removed file are useless and could retain personal data.
            { ...entry, status: 'deleted', snapshotId: id, file: { ...file, columns: new Map() } }
          : { ...entry, status: 'existing', file },
      );
    }
  }
  const kept = live.filter(({ path }) => !rewritten.has(path));
  return entries.length === 0 ? kept : [...kept, await write(entries)];
}

function figuresOf(
  parent: Snapshot | undefined,
  { added, removed, deletes }: Required<Pick<Change, 'added' | 'removed' | 'deletes'>>,
): Record<string, string> {
  const sum = (files: Change['added' | 'removed'], of: 'rows' | 'bytes'): number =>
    files.reduce((all, { file }) => all + file[of], 0);
  const total = (key: string, change: number): string => String(Number(parent?.summary[key] ?? 0) + change);
  const figures = {
    'added-data-files': added.length,
    'added-records': sum(added, 'rows'),
    'added-files-size': sum(added, 'bytes'),
    'deleted-data-files': removed.length,
    'deleted-records': sum(removed, 'rows'),
    'removed-files-size': sum(removed, 'bytes'),
    'changed-partition-count': new Set([...added, ...removed].map(({ file }) => file.day)).size,
  };
  const deletions = (key: string): string => (deletes.length === 0 ? '0' : total(key, 0));
  return {
    ...Object.fromEntries(
      Object.entries(figures).flatMap(([key, value]) => (value === 0 ? [] : [[key, String(value)]])),
    ),
    'total-data-files': total('total-data-files', added.length - removed.length),
    'total-records': total('total-records', figures['added-records'] - figures['deleted-records']),
    'total-files-size': total('total-files-size', figures['added-files-size'] - figures['removed-files-size']),
    'total-delete-files': String(liveFiles(...deletes)),
    'total-position-deletes': deletions('total-position-deletes'),
    'total-equality-deletes': deletions('total-equality-deletes'),
  };
}
