import { randomUUID } from 'node:crypto';
import type { Queryable } from '../../cursor/database/index.ts';
import { ConfigError, RetryLater } from '../../model/errors.ts';
import { parseJson, stringifyJson } from '../../model/json.ts';
import {
  currentSnapshot,
  type Metadata,
  metadataText,
  newMetadata,
  nextVersion,
  parseMetadata,
} from './format/metadata.ts';
import {
  type Catalog,
  createFile,
  type Draft,
  type Listed,
  locationOf,
  pathOf,
  readBytes,
  tableFolder,
  type Warehouse,
} from './warehouse.ts';

/** The catalog name under which readers find the tables. */
const CATALOG = 'tributary';

/** As pyiceberg's SqlCatalog and Java's JdbcCatalog create and share them. */
const TABLES = `
  create table if not exists public.iceberg_tables (
    catalog_name varchar(255) not null, table_namespace varchar(255) not null, table_name varchar(255) not null,
    metadata_location varchar(1000), previous_metadata_location varchar(1000), iceberg_type varchar(5),
    primary key (catalog_name, table_namespace, table_name));
  create table if not exists public.iceberg_namespace_properties (
    catalog_name varchar(255) not null, namespace varchar(255) not null, property_key varchar(255) not null,
    property_value varchar(1000) not null, primary key (catalog_name, namespace, property_key));`;

/** Serializes commits, compaction and erasure of one table. Held until the end of the transaction. */
export const lockTable = async (tx: Queryable, { namespace }: Warehouse, table: string): Promise<void> => {
  await tx.query({
    text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
    values: [`tributary iceberg ${namespace}.${table}`],
  });
};

/** The catalog in the state's own database: a table changes in the same transaction as ledger and cursor. */
export function createSqlCatalog(): Catalog {
  // A version never changes, so the last one of each table is cached.
  const known = new Map<string, Listed>();

  const write = async (draft: Draft, table: string, metadata: Metadata, version: number): Promise<Listed> => {
    const name = `${String(version).padStart(5, '0')}-${randomUUID()}.metadata.json`;
    const path = `${tableFolder(draft.warehouse, table)}/metadata/${name}`;
    await createFile(draft, path, Buffer.from(metadataText(metadata)));
    return { location: locationOf(draft.warehouse, path), metadata };
  };

  return {
    isInState: true,
    async load(tx, warehouse, table) {
      // Not by to_regclass: after waiting for an advisory lock it may answer from this connection's cache.
      const [there] = await tx.query({
        text: "select 1 from pg_catalog.pg_tables where schemaname = 'public' and tablename = 'iceberg_tables'",
      });
      if (!there) return undefined;
      const [row] = await tx.query<{ location: string }>({
        text: `
          select metadata_location as location from public.iceberg_tables
          where catalog_name = $1 and table_namespace = $2 and table_name = $3`,
        values: [CATALOG, warehouse.namespace, table],
      });
      if (!row) return undefined;
      const held = known.get(table);
      if (held?.location === row.location) return held;
      const metadata = parseMetadata((await readBytes(warehouse, row.location)).toString('utf8'));
      const listed = { location: row.location, metadata };
      known.set(table, listed);
      return listed;
    },
    async create(tx, draft, design) {
      const { warehouse } = draft;
      // Two processes that create a table at once collide in Postgres' own catalog, even with `if not exists`.
      await tx.query({ text: "select pg_advisory_xact_lock(hashtext('tributary iceberg catalog'))" });
      await tx.query({ text: TABLES });
      const location = locationOf(warehouse, tableFolder(warehouse, design.name));
      const listed = await write(draft, design.name, newMetadata(design, location, Date.now()), 0);
      await tx.query({
        text: `
          insert into public.iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
          values ($1, $2, 'exists', 'true') on conflict do nothing`,
        values: [CATALOG, warehouse.namespace],
      });
      await tx.query({
        text: `
          insert into public.iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)
          values ($1, $2, $3, $4, 'TABLE')`,
        values: [CATALOG, warehouse.namespace, design.name, listed.location],
      });
      return listed;
    },
    async replace(tx, draft, table, before, metadata) {
      const version = Number(/\/(\d+)-[^/]+$/.exec(before.location)?.[1] ?? 0) + 1;
      const next = nextVersion(metadata, before.location, Date.now());
      const listed = await write(draft, table, next, version);
      const swapped = await tx.query({
        text: `
          update public.iceberg_tables set metadata_location = $4, previous_metadata_location = $5
          where catalog_name = $1 and table_namespace = $2 and table_name = $3 and metadata_location = $5 returning 1`,
        values: [CATALOG, draft.warehouse.namespace, table, listed.location, before.location],
      });
      if (swapped.length === 0) throw changedMeanwhile(draft.warehouse, table);
      known.set(table, listed);
      const kept = new Set([before.location, ...next['metadata-log'].map((entry) => entry['metadata-file'])]);
      const dropped = metadata['metadata-log'].filter((entry) => !kept.has(entry['metadata-file']));
      draft.obsolete.push(...dropped.map((entry) => pathOf(draft.warehouse, entry['metadata-file'])));
      return listed;
    },
  };
}

const changedMeanwhile = ({ namespace }: Warehouse, table: string): RetryLater =>
  new RetryLater(`another program changed the Iceberg table ${namespace}.${table} while this one was writing to it`, {
    kept: 'the version of the other program; nothing of this batch was written',
    next: 'run again: the batch is merged into what is there now',
  });

export interface RestCatalogOptions {
  uri: string;
  /** A secret: it is sent in the header of each request and used nowhere else. */
  token: string | undefined;
  /** The catalog's name for the warehouse. */
  warehouse: string | undefined;
}

const SILENCE_MS = 30_000;

/** The server's answer. Without a status it is unknown whether the request arrived. */
interface Answer {
  status: number | undefined;
  body: unknown;
}

/**
 * A catalog that speaks Iceberg's REST protocol: Polaris, Lakekeeper, Glue, S3 Tables. No transaction spans it and the state: a table
 * changes first, and names the commit; if the state missed it, recovery reads it from the table.
 */
export function createRestCatalog({ uri, token, warehouse: name }: RestCatalogOptions): Catalog {
  const base = uri.replace(/\/+$/, '');
  let prefix: Promise<string> | undefined;

  const ask = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    try {
      const response = await fetch(`${base}/v1/${path}`, {
        method,
        signal: AbortSignal.timeout(SILENCE_MS),
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: stringifyJson(body) }),
      });
      const text = await response.text();
      return { status: response.status, body: text === '' ? undefined : parseJson(text) };
    } catch {
      // Recovery: the caller's, which looks up whether the request took effect.
      return { status: undefined, body: undefined };
    }
  };

  const findPrefix = async (): Promise<string> => {
    const query = name === undefined ? '' : `?warehouse=${encodeURIComponent(name)}`;
    const { status, body } = await ask('GET', `config${query}`);
    if (status !== 200) throw refused(base, status, 'its config');
    const { defaults = {}, overrides = {} } = body as Record<string, Record<string, string>>;
    const found = overrides.prefix ?? defaults.prefix;
    return found === undefined ? '' : `${found}/`;
  };

  const pathTo = async (...steps: string[]): Promise<string> => {
    prefix ??= findPrefix();
    try {
      return (await prefix) + steps.map(encodeURIComponent).join('/');
    } catch (error) {
      // Recovery: the next call asks again.
      prefix = undefined;
      throw error;
    }
  };

  const load = async (warehouse: Warehouse, table: string): Promise<Listed | undefined> => {
    const { status, body } = await ask('GET', await pathTo('namespaces', warehouse.namespace, 'tables', table));
    if (status === 404) return undefined;
    if (status !== 200) throw refused(base, status, `${warehouse.namespace}.${table}`);
    return listedOf(body);
  };

  return {
    isInState: false,
    load: (_tx, warehouse, table) => load(warehouse, table),
    async create(_tx, { warehouse }, design) {
      const { namespace } = warehouse;
      const made = await ask('POST', await pathTo('namespaces'), { namespace: [namespace], properties: {} });
      if (made.status !== 200 && made.status !== 409) throw refused(base, made.status, `namespace ${namespace}`);
      const location = locationOf(warehouse, tableFolder(warehouse, design.name));
      const metadata = newMetadata(design, location, Date.now());
      const { status, body } = await ask('POST', await pathTo('namespaces', namespace, 'tables'), {
        name: design.name,
        location,
        schema: metadata.schemas[0],
        'partition-spec': metadata['partition-specs'][0],
        'write-order': metadata['sort-orders'][0],
        properties: metadata.properties,
        'stage-create': false,
      });
      if (status === 200) return listedOf(body);
      // Created by another process at the same moment, or by a request whose answer was lost.
      const there = await load(warehouse, design.name);
      if (!there) throw refused(base, status, `${namespace}.${design.name}`);
      return there;
    },
    async replace(_tx, draft, table, before, metadata) {
      const { warehouse } = draft;
      const { status, body } = await ask('POST', await pathTo('namespaces', warehouse.namespace, 'tables', table), {
        requirements: requirementsOf(before.metadata),
        updates: updatesOf(before.metadata, metadata),
      });
      if (status === 409) throw changedMeanwhile(warehouse, table);
      if (status !== undefined && status >= 400 && status < 500) throw refused(base, status, table);
      if (status === 200) {
        // From now on the table refers to the files, even if the state's transaction fails.
        draft.made.length = 0;
        return listedOf(body);
      }
      // It is unknown whether the commit took effect, so it is looked up. Without an answer the files stay, as orphans at worst.
      draft.made.length = 0;
      const now = await load(warehouse, table);
      const wanted = currentSnapshot(metadata)?.['snapshot-id'];
      const isThere = now?.metadata.snapshots.some((one) => String(one['snapshot-id']) === String(wanted));
      if (now && isThere) return now;
      throw refused(base, status, table);
    },
  };
}

const listedOf = (body: unknown): Listed => {
  const { 'metadata-location': location, metadata } = body as { 'metadata-location': string; metadata: Metadata };
  // Servers leave out what is empty.
  const full = { ...metadata, snapshots: metadata.snapshots ?? [], refs: metadata.refs ?? {} };
  const logs = { 'snapshot-log': full['snapshot-log'] ?? [], 'metadata-log': full['metadata-log'] ?? [] };
  return { location, metadata: { ...full, properties: full.properties ?? {}, ...logs } };
};

/** Requires that it is the same table, at the snapshot that we started from. */
const requirementsOf = (before: Metadata): object[] => [
  { type: 'assert-table-uuid', uuid: before['table-uuid'] },
  { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': currentSnapshot(before)?.['snapshot-id'] ?? null },
  { type: 'assert-current-schema-id', 'current-schema-id': before['current-schema-id'] },
];

function updatesOf(before: Metadata, after: Metadata): object[] {
  const updates: object[] = [];
  if (after['current-schema-id'] !== before['current-schema-id']) {
    const schema = after.schemas.find((one) => one['schema-id'] === after['current-schema-id']);
    updates.push({ action: 'add-schema', schema, 'last-column-id': after['last-column-id'] });
    // −1: the one that was added last.
    updates.push({ action: 'set-current-schema', 'schema-id': -1 });
  }
  const properties = Object.entries(after.properties).filter(([key, value]) => before.properties[key] !== value);
  if (properties.length > 0) updates.push({ action: 'set-properties', updates: Object.fromEntries(properties) });
  const [had, has] = [before, after].map(
    ({ snapshots }) => new Set(snapshots.map((snapshot) => String(snapshot['snapshot-id']))),
  ) as [Set<string>, Set<string>];
  for (const snapshot of after.snapshots.filter((one) => !had.has(String(one['snapshot-id'])))) {
    updates.push({ action: 'add-snapshot', snapshot });
    updates.push({
      action: 'set-snapshot-ref',
      'ref-name': 'main',
      type: 'branch',
      'snapshot-id': snapshot['snapshot-id'],
    });
  }
  const gone = before.snapshots.map((one) => one['snapshot-id']).filter((id) => !has.has(String(id)));
  if (gone.length > 0) updates.push({ action: 'remove-snapshots', 'snapshot-ids': gone });
  return updates;
}

function refused(base: string, status: number | undefined, what: string): RetryLater | ConfigError {
  if (status === 401 || status === 403) {
    return new ConfigError(`the Iceberg catalog at ${base} refused ${what} (${status})`, {
      kept: 'everything; nothing was changed',
      next: 'see that catalog.token is right and may read and write this namespace',
    });
  }
  return new RetryLater(
    status === undefined
      ? `the Iceberg catalog at ${base} did not answer for ${what}`
      : `the Iceberg catalog at ${base} answered ${status} for ${what}`,
    { kept: 'whatever was committed before', next: 'run again once the catalog works' },
  );
}
