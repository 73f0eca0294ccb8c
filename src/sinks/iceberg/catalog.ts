import { randomUUID } from 'node:crypto';
import type { Queryable } from '../../cursor/database/index.ts';
import { raw, type Sql, sql } from '../../cursor/database/sql.ts';
import { RetryLater } from '../../model/errors.ts';
import { inChange } from '../files/change.ts';
import { type Metadata, metadataText, newMetadata, nextVersion } from './format/metadata.ts';
import { moveHead, recordHead, unsettleFeeds } from './heads.ts';
import { findNewer, missingMetadata, newestOf, readVersion, versionName, versionOf } from './upkeep/versions.ts';
import {
  CATALOG,
  type Catalog,
  createFile,
  type Draft,
  isBelow,
  locationOf,
  tableFolder,
  tableLock,
  type Version,
  type Warehouse,
} from './warehouse.ts';

/** The tables of pyiceberg's SqlCatalog and Java's JdbcCatalog. */
const TABLES = raw(`
  create table if not exists public.iceberg_tables (
    catalog_name varchar(255) not null, table_namespace varchar(255) not null, table_name varchar(255) not null,
    metadata_location varchar(1000), previous_metadata_location varchar(1000), iceberg_type varchar(5),
    primary key (catalog_name, table_namespace, table_name));
  create table if not exists public.iceberg_namespace_properties (
    catalog_name varchar(255) not null, namespace varchar(255) not null, property_key varchar(255) not null,
    property_value varchar(1000) not null, primary key (catalog_name, namespace, property_key));`);

/** Postgres: there is no such schema, or no such function. */
const NO_FUNCTION = ['3F000', '42883'];

/** The catalog in the state's own database: a table changes in the same transaction as ledger and cursor. */
export function createSqlCatalog(): Catalog {
  // A version never changes, so the latest one of each table is cached.
  const known = new Map<string, Version>();
  /** By table: the location of a version that has no newer one beside it. */
  const checked = new Map<string, string>();

  const write = async (draft: Draft, table: string, metadata: Metadata, version: number): Promise<Version> => {
    const path = `${tableFolder(draft.warehouse, table)}/metadata/${versionName(version, randomUUID())}`;
    await createFile(draft, path, Buffer.from(metadataText(metadata)));
    return { location: locationOf(draft.warehouse, path), metadata };
  };

  const currentOf = async ({ state, namespace }: Warehouse, table: string): Promise<string | null> => {
    // Not by to_regclass: after a wait for an advisory lock it may use a stale cache of this connection.
    try {
      const [row] = await state.query<{ location: string | null }>(
        sql`select tributary.iceberg_location(${CATALOG}, ${namespace}, ${table}) as location`,
      );
      return row?.location ?? null;
    } catch (error) {
      // Recovery: the first sync creates the function. Until then `doctor` finds no table.
      if (NO_FUNCTION.includes((error as { code?: string }).code ?? '')) return null;
      throw error;
    }
  };

  const findUnnamed = async (warehouse: Warehouse, table: string): Promise<Version | undefined> => {
    const location = await currentOf(warehouse, table);
    if (location === null || checked.get(table) === location || !isBelow(warehouse, location)) return undefined;
    const newer = await findNewer(warehouse, table, location);
    if (!newer) checked.set(table, location);
    return newer;
  };

  return {
    isInState: true,
    async load(warehouse, table) {
      const location = await currentOf(warehouse, table);
      if (location === null) return undefined;
      const held = known.get(table);
      if (held?.location === location) return held;
      const listed = await readVersion(warehouse, location);
      if (!listed) throw missingMetadata(warehouse, table, location, await newestOf(warehouse, table));
      known.set(table, listed);
      return listed;
    },
    findNewer: findUnnamed,
    async recover(warehouse, table) {
      if (!(await findUnnamed(warehouse, table))) return false;
      return inChange(warehouse.state, tableLock(warehouse, table), async ({ later }) => {
        const newer = await findUnnamed(warehouse, table);
        if (!newer) return false;
        const location = await currentOf(warehouse, table);
        later(swap(warehouse, table, newer, location));
        later(moveHead(warehouse, table, newer, 1, location));
        later(unsettleFeeds(warehouse, table));
        return true;
      });
    },
    async create(draft, design) {
      const { warehouse } = draft;
      const location = locationOf(warehouse, tableFolder(warehouse, design.name));
      const listed = await write(draft, design.name, newMetadata(design, location, Date.now()), 0);
      draft.later((tx) => insert(tx, warehouse, design.name, listed));
      return listed;
    },
    async replace(draft, table, before, metadata) {
      const { warehouse } = draft;
      const version = (versionOf(before.location) ?? 0) + 1;
      const listed = await write(draft, table, nextVersion(metadata, before.location), version);
      draft.later(async (tx) => {
        const swapped = await tx.query(swap(warehouse, table, listed, before.location));
        if (swapped.length === 0) throw changedMeanwhile(warehouse, table);
        await tx.query(recordHead(warehouse, table, listed, before.location));
        known.set(table, listed);
        checked.set(table, listed.location);
      });
      return listed;
    },
  };
}

async function insert(tx: Queryable, warehouse: Warehouse, table: string, listed: Version): Promise<void> {
  // Concurrent `create table if not exists` statements collide in Postgres' own catalog.
  await tx.query(sql`select pg_advisory_xact_lock(hashtext('tributary iceberg catalog'))`);
  await tx.query(TABLES);
  const { namespace } = warehouse;
  await tx.query(sql`
    insert into public.iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)
    values (${CATALOG}, ${namespace}, 'exists', 'true') on conflict do nothing`);
  await tx.query(sql`
    insert into public.iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)
    values (${CATALOG}, ${namespace}, ${table}, ${listed.location}, 'TABLE')`);
  await tx.query(recordHead(warehouse, table, listed, null));
}

const swap = ({ namespace }: Warehouse, table: string, to: Version, from: string | null): Sql => sql`
  update public.iceberg_tables set metadata_location = ${to.location}, previous_metadata_location = ${from}
  where (catalog_name, table_namespace, table_name, metadata_location) = (${CATALOG}, ${namespace}, ${table}, ${from}) returning 1`;

export const changedMeanwhile = ({ namespace }: Warehouse, table: string): RetryLater =>
  new RetryLater(`another program changed the Iceberg table ${namespace}.${table} while this one was writing to it`, {
    kept: 'the version of the other program; nothing of this batch was written',
    next: 'run again: the batch is merged into what is there now',
  });
