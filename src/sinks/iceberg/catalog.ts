import { randomUUID } from 'node:crypto';
import type { Queryable } from '../../cursor/database/index.ts';
import { RetryLater } from '../../model/errors.ts';
import { type Metadata, metadataText, newMetadata, nextVersion, parseMetadata } from './format/metadata.ts';
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

/** By this name readers find the tables. */
export const CATALOG = 'tributary';

/** As pyiceberg's SqlCatalog and Java's JdbcCatalog make them, and share them. */
const TABLES = `
  create table if not exists public.iceberg_tables (
    catalog_name varchar(255) not null, table_namespace varchar(255) not null, table_name varchar(255) not null,
    metadata_location varchar(1000), previous_metadata_location varchar(1000), iceberg_type varchar(5),
    primary key (catalog_name, table_namespace, table_name));
  create table if not exists public.iceberg_namespace_properties (
    catalog_name varchar(255) not null, namespace varchar(255) not null, property_key varchar(255) not null,
    property_value varchar(1000) not null, primary key (catalog_name, namespace, property_key));`;

/** One at a time: commits, compaction and erasure of one table. Held to the end of the transaction. */
export const lockTable = async (tx: Queryable, { namespace }: Warehouse, table: string): Promise<void> => {
  await tx.query({
    text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
    values: [`tributary iceberg ${namespace}.${table}`],
  });
};

/** The catalog in the state's own database: a table changes in the same transaction as ledger and cursor. */
export function createSqlCatalog(): Catalog {
  // A version never changes, so the last one of each table need not be read again.
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
      // Not by to_regclass: behind an advisory lock it may answer from what this connection knew before.
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
      // Tables made by two at once collide in Postgres' own catalog, even with `if not exists`.
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

export const changedMeanwhile = ({ namespace }: Warehouse, table: string): RetryLater =>
  new RetryLater(`another program changed the Iceberg table ${namespace}.${table} while this one was writing to it`, {
    kept: 'the version of the other program; nothing of this batch was written',
    next: 'run again: the batch is merged into what is there now',
  });
