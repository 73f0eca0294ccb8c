import { randomUUID } from 'node:crypto';
import type { Queryable } from '../../cursor/database/index.ts';
import { ConfigError, RetryLater } from '../../model/errors.ts';
import { type Metadata, metadataText, newMetadata, nextVersion, parseMetadata } from './format/metadata.ts';
import { moveHead, recordHead, unsettleTracks } from './heads.ts';
import {
  type Catalog,
  createFile,
  type Draft,
  isBelow,
  type Listed,
  locationOf,
  pathOf,
  readIfThere,
  tableFolder,
  type Warehouse,
} from './warehouse.ts';

/** The catalog name under which readers find the tables. */
export const CATALOG = 'tributary';

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

  const currentOf = async (tx: Queryable, { namespace }: Warehouse, table: string): Promise<string | null> => {
    // Not by to_regclass: after waiting for an advisory lock it may answer from this connection's cache.
    const [row] = await tx.query<{ location: string | null }>({
      text: 'select tributary.iceberg_location($1, $2, $3) as location',
      values: [CATALOG, namespace, table],
    });
    return row?.location ?? null;
  };

  return {
    isInState: true,
    async load(tx, warehouse, table) {
      const location = await currentOf(tx, warehouse, table);
      if (location === null) return undefined;
      const held = known.get(table);
      if (held?.location === location) return held;
      const bytes = await readIfThere(warehouse, location);
      if (!bytes) throw withoutMetadata(warehouse, table, location, await newestVersion(warehouse, table));
      const listed = { location, metadata: parseMetadata(bytes.toString('utf8')) };
      known.set(table, listed);
      return listed;
    },
    async isLost(tx, warehouse, table) {
      const location = await currentOf(tx, warehouse, table);
      if (location === null || known.get(table)?.location === location || !isBelow(warehouse, location)) return false;
      return (await readIfThere(warehouse, location)) === undefined;
    },
    async recover(tx, warehouse, table) {
      const location = await currentOf(tx, warehouse, table);
      const newest = await newestVersion(warehouse, table);
      if (!newest) return false;
      const values = [CATALOG, warehouse.namespace, table, newest.location, location];
      const swapped = await tx.query({ text: SWAP, values });
      if (swapped.length === 0) return false;
      await moveHead(tx, warehouse, table, newest, { by: 1, from: location ?? undefined });
      await unsettleTracks(tx, warehouse, table);
      return true;
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
      await recordHead(tx, warehouse, design.name, listed, undefined);
      return listed;
    },
    async replace(tx, draft, table, before, metadata) {
      const version = Number(/\/(\d+)-[^/]+$/.exec(before.location)?.[1] ?? 0) + 1;
      const next = nextVersion(metadata, before.location, Date.now());
      const listed = await write(draft, table, next, version);
      const values = [CATALOG, draft.warehouse.namespace, table, listed.location, before.location];
      const swapped = await tx.query({ text: SWAP, values });
      if (swapped.length === 0) throw changedMeanwhile(draft.warehouse, table);
      await recordHead(tx, draft.warehouse, table, listed, before.location);
      known.set(table, listed);
      const kept = new Set([before.location, ...next['metadata-log'].map((entry) => entry['metadata-file'])]);
      const dropped = metadata['metadata-log'].filter((entry) => !kept.has(entry['metadata-file']));
      draft.obsolete.push(...dropped.map((entry) => pathOf(draft.warehouse, entry['metadata-file'])));
      return listed;
    },
  };
}

const SWAP = `
  update public.iceberg_tables set metadata_location = $4, previous_metadata_location = $5
  where catalog_name = $1 and table_namespace = $2 and table_name = $3 and metadata_location = $5 returning 1`;

/** The version that was written last, of those in the table's folder: for a catalog or a folder that was restored. */
async function newestVersion(warehouse: Warehouse, table: string): Promise<Listed | undefined> {
  let newest: Listed | undefined;
  const folder = `${tableFolder(warehouse, table)}/metadata`;
  for await (const { path } of warehouse.store.list(folder)) {
    if (!path.endsWith('.metadata.json')) continue;
    const location = locationOf(warehouse, path);
    const bytes = await readIfThere(warehouse, location);
    if (!bytes) continue;
    const metadata = parseMetadata(bytes.toString('utf8'));
    if (newest && newest.metadata['last-updated-ms'] >= metadata['last-updated-ms']) continue;
    newest = { location, metadata };
  }
  return newest;
}

const withoutMetadata = (
  { name, namespace }: Warehouse,
  table: string,
  location: string,
  newest: Listed | undefined,
): ConfigError =>
  new ConfigError(`the catalog says that the metadata of ${namespace}.${table} is at ${location}, which is not there`, {
    where: { sink: name },
    kept: 'the catalog and the files as they are',
    next: newest
      ? `run tributary sync: it goes on with the newest version that is there, ${newest.location}, and reads again what that lacks`
      : 'bring the warehouse back from a backup; or drop the table from the catalog, and sync fills a new one',
  });

export const changedMeanwhile = ({ namespace }: Warehouse, table: string): RetryLater =>
  new RetryLater(`another program changed the Iceberg table ${namespace}.${table} while this one was writing to it`, {
    kept: 'the version of the other program; nothing of this batch was written',
    next: 'run again: the batch is merged into what is there now',
  });
