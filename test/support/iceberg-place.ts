import { mkdtemp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { avroMetadata, avroRead } from 'icebird';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import type { ReadAgainMs } from '../../src/sinks/files/event-index.ts';
import { createFolderStore } from '../../src/sinks/files/store/folder-store.ts';
import { createS3Store } from '../../src/sinks/files/store/s3-store.ts';
import type { Store } from '../../src/sinks/files/store/store.ts';
import { createIcebergSink, type IcebergSink } from '../../src/sinks/iceberg/iceberg-sink.ts';
import { MAINTENANCE, type Maintenance } from '../../src/sinks/iceberg/maintain.ts';
import type { RestCatalogOptions } from '../../src/sinks/iceberg/rest-catalog.ts';
import { download, WHOLE_HISTORY } from './lake-place.ts';
import { filesIn, readRelation } from './lake-readers.ts';
import { stateDatabase } from './postgres.ts';
import type { S3Server } from './s3-server.ts';
import type { SinkPlace } from './sink-harness.ts';

/** Maintenance that keeps only current files. */
export const KEEP_NOTHING: Partial<Maintenance> = {
  keep: { all: -60_000, hourly: -60_000, daily: -60_000, most: 1 },
  orphanMs: -60_000,
  versionsMs: -60_000,
};

export interface IcebergPlace extends SinkPlace {
  folder: string;
  stateUrl: string;
  createSink(maintenance?: Partial<Maintenance>): IcebergSink;
  /** The table's current version in the catalog, read by a third-party Avro library. */
  lookAt(table: string): Promise<SeenTable>;
}

/** Tables in a new folder, with a new state and catalog. */
export async function icebergPlace(readAgainMs: ReadAgainMs = WHOLE_HISTORY): Promise<IcebergPlace> {
  const folder = await newFolder();
  return placeOf({ ...inFolder(folder), readAgainMs });
}

/** Tables in a bucket of a local S3 server. Readers use a copy in a folder. */
export async function icebergS3Place(server: S3Server): Promise<IcebergPlace & { prefix: string }> {
  const folder = await newFolder();
  const prefix = `tables/${basename(folder)}`;
  const warehouse = `s3://${server.bucket}/${prefix}`;
  copies.set(warehouse, folder);
  // A file never changes, so one copy is enough.
  const look = async (): Promise<void> => {
    const known = new Set(await filesIn(folder));
    const there = await download(server, `${prefix}/`, folder, known);
    for (const path of known) if (!there.has(path)) await rm(join(folder, path));
  };
  const createStore = (): Store => createS3Store({ url: warehouse, pathStyle: true });
  return { ...(await placeOf({ folder, warehouse, createStore, look })), prefix };
}

/** Tables in a folder and a REST catalog. */
export async function icebergRestPlace(
  uri: string,
  token = (): string | undefined => undefined,
): Promise<IcebergPlace> {
  const folder = await newFolder();
  const namespace = basename(folder).toLowerCase().replaceAll('-', '_');
  return placeOf({ ...inFolder(folder), namespace, rest: () => ({ uri, token: token(), warehouse: undefined }) });
}

const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'tributary-iceberg-'));

const inFolder = (folder: string): Made => ({
  folder,
  warehouse: folder,
  createStore: () => createFolderStore(folder),
});

interface Made {
  folder: string;
  warehouse: string;
  createStore(): Store;
  /** Refreshes the copy that is read, if there is one. */
  look?(): Promise<void>;
  readAgainMs?: ReadAgainMs;
  namespace?: string;
  rest?: () => RestCatalogOptions;
}

async function placeOf({
  folder,
  warehouse,
  createStore,
  look,
  readAgainMs = WHOLE_HISTORY,
  namespace = 'attribution',
  rest,
}: Made): Promise<IcebergPlace> {
  const home = await stateDatabase();
  const state = connect({ url: home.url });
  const lookAt = async (table: string): Promise<SeenTable> => {
    await look?.();
    return rest ? lookByRest(rest(), namespace, table) : lookAtTable(state, namespace, table);
  };
  return {
    state,
    folder,
    stateUrl: home.url,
    lookAt,
    createSink: (maintenance = {}) =>
      createIcebergSink({
        ...{ name: 'tables', state, readAgainMs, warehouse, namespace, store: createStore() },
        ...(rest && { rest: rest() }),
        maintenance: { ...MAINTENANCE, ...maintenance },
      }),
    async readRows(stream) {
      const seen = await lookAt(stream.name);
      return seen.files.length === 0 ? [] : readRelation(relationOf(seen), stream);
    },
    async close() {
      await state.close();
      await home.drop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

interface Field {
  id: number;
  name: string;
  type: string;
}

export interface SeenTable {
  metadata: Record<string, unknown> & { snapshots: SeenSnapshot[]; 'current-snapshot-id'?: number };
  location: string;
  fields: Field[];
  files: SeenFile[];
}

export interface SeenSnapshot {
  'snapshot-id': number;
  'timestamp-ms': number;
  'manifest-list': string;
  summary: Record<string, string>;
}

export interface SeenFile {
  path: string;
  rows: number;
}

export async function lookAtTable(state: Database, namespace: string, table: string): Promise<SeenTable> {
  const [row] = await state.query<{ location: string }>({
    text: `select metadata_location as location from public.iceberg_tables
      where catalog_name = 'tributary' and table_namespace = $1 and table_name = $2`,
    values: [namespace, table],
  });
  if (!row) throw new Error(`the catalog has no table ${table}`);
  return seenTable(row.location);
}

async function lookByRest({ uri, token }: RestCatalogOptions, namespace: string, table: string): Promise<SeenTable> {
  const answer = await fetch(`${uri}/v1/namespaces/${namespace}/tables/${table}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return seenTable(((await answer.json()) as { 'metadata-location': string })['metadata-location']);
}

async function seenTable(location: string): Promise<SeenTable> {
  const metadata = JSON.parse(await readFile(pathOf(location), 'utf8'));
  const { fields } = metadata.schemas.find(
    (schema: { 'schema-id': number }) => schema['schema-id'] === metadata['current-schema-id'],
  );
  const snapshot = metadata.snapshots.find(
    (one: SeenSnapshot) => one['snapshot-id'] === metadata['current-snapshot-id'],
  );
  return { metadata, location, fields, files: snapshot ? await filesOf(snapshot['manifest-list']) : [] };
}

/** The data files of a manifest list. */
export async function filesOf(manifestList: string): Promise<SeenFile[]> {
  const files: SeenFile[] = [];
  for (const manifest of await readAvro(manifestList)) {
    for (const entry of await readAvro(manifest.manifest_path as string)) {
      if (entry.status === 2) continue;
      const { file_path, record_count } = entry.data_file as { file_path: string; record_count: bigint };
      files.push({ path: pathOf(file_path), rows: Number(record_count) });
    }
  }
  return files;
}

/** The contents of an Avro file, bounds as text. */
export async function everyAvro(path: string): Promise<string> {
  const texts = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
    if (typeof value === 'bigint') return String(value);
    if (Array.isArray(value)) return value.map(texts);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, texts(inner)]));
  };
  return JSON.stringify(texts(await readAvro(path)));
}

async function readAvro(location: string): Promise<Array<Record<string, unknown>>> {
  const bytes = Uint8Array.from(await readFile(pathOf(location)));
  const reader = { view: new DataView(bytes.buffer), offset: 0 };
  const { metadata, syncMarker } = avroMetadata(reader);
  return (await avroRead({ reader, metadata, syncMarker })) as Array<Record<string, unknown>>;
}

/** Every file that the table refers to. */
export async function namedBy({ metadata, location }: SeenTable): Promise<Set<string>> {
  const log = metadata['metadata-log'] as Array<{ 'metadata-file': string }>;
  const named = new Set([location, ...log.map((entry) => entry['metadata-file'])]);
  for (const { 'manifest-list': list } of metadata.snapshots) {
    named.add(list);
    for (const manifest of await readAvro(list)) named.add(manifest.manifest_path as string);
    for (const { path } of await filesOf(list)) named.add(path);
  }
  return new Set([...named].map(pathOf));
}

/** Makes the table so much older. A sink that has loaded it does not notice. */
export async function ageTable(seen: SeenTable, ms: number): Promise<void> {
  for (const snapshot of seen.metadata.snapshots) snapshot['timestamp-ms'] -= ms;
  await writeFile(pathOf(seen.location), JSON.stringify(seen.metadata));
  for (const file of await namedBy(seen)) {
    const at = ((await stat(file)).mtimeMs - ms) / 1000;
    await utimes(file, at, at);
  }
}

/** Local copies of buckets, by address. */
const copies = new Map<string, string>();

export function pathOf(location: string): string {
  for (const [address, folder] of copies) {
    if (location.startsWith(`${address}/`)) return location.replace(address, folder);
  }
  return location.replace(/^file:\/+/, '/');
}

const DUCKDB_TYPES: Readonly<Record<string, string>> = {
  string: 'VARCHAR',
  long: 'BIGINT',
  double: 'DOUBLE',
  boolean: 'BOOLEAN',
  timestamptz: 'TIMESTAMP WITH TIME ZONE',
};

/** The files as an Iceberg reader reads them: columns by field id, whatever their names. */
export function relationOf({ files, fields }: SeenTable): string {
  const schema = fields.map(
    ({ id, name, type }) => `${id}: {name: '${name}', type: '${DUCKDB_TYPES[type]}', default_value: NULL}`,
  );
  return `read_parquet([${files.map(({ path }) => `'${path}'`).join()}], schema = MAP {${schema.join()}})`;
}
