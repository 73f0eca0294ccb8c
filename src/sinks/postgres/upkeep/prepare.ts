import type { Database, Queryable } from '../../../cursor/database/index.ts';
import { quoteIdent, raw, sql } from '../../../cursor/database/sql.ts';
import { ENTITIES, STREAM_NAMES, STREAMS, type Stream } from '../../../model/streams.ts';
import type { IndexName } from '../../views/postgres-indexes.ts';
import { columnsCopy, createReceipts, cursorCopy, daysTable, RECEIPTS } from '../beside.ts';
import { keysTable } from '../months.ts';
import {
  alterTable,
  bringUpToDate,
  describeTable,
  entityTable,
  evolvedNames,
  lockSchema,
  type Partition,
  readShape,
  streamTable,
  type Table,
} from '../table.ts';
import { type Viewed, viewsOf } from '../views.ts';
import { keepViews } from './keep-views.ts';

export interface Warehouse extends Viewed {
  db: Database;
  partition: Partition;
  indexes: readonly IndexName[];
}

/** The tables that do not depend on a stream's columns, in the order of creation. */
const sharedTables = ({ isStateHere, partition }: Warehouse): Table[] => [
  ...(isStateHere ? [] : [cursorCopy, columnsCopy]),
  daysTable,
  ...(partition === 'none' ? [] : STREAM_NAMES.map((name) => keysTable(STREAMS[name]))),
  ...ENTITIES.map(entityTable),
];

export function shapeOf(tx: Queryable, warehouse: Warehouse): Promise<string> {
  const others = [...sharedTables(warehouse), ...viewsOf(warehouse)].map(({ name }) => name);
  return readShape(tx, warehouse.schema, [...STREAM_NAMES, ...others, ...(warehouse.isStateHere ? [] : [RECEIPTS])]);
}

/** Creates or updates all tables and views, with the stream's current columns, and `further` tables that not every config needs. */
export function prepareWarehouse(warehouse: Warehouse, stream: Stream | undefined, further: readonly Table[] = []) {
  const { db, schema, isStateHere, partition, indexes } = warehouse;
  return db.transaction(async (tx) => {
    await tx.query(lockSchema(schema));
    await ensureSchema(tx, schema);
    if (!isStateHere) await tx.query(createReceipts(schema));
    if (stream) await bringUpToDate(tx, schema, streamTable(stream, partition, indexes), evolvedNames(stream));
    // The tables of other streams only have to exist with all columns, for the views.
    for (const name of STREAM_NAMES.filter((other) => other !== stream?.name)) {
      const table = streamTable(STREAMS[name], partition, indexes);
      const present = await describeTable(tx, schema, name);
      if (!present || alterTable(schema, table, present) !== '') await bringUpToDate(tx, schema, table);
    }
    for (const table of [...sharedTables(warehouse), ...further]) await bringUpToDate(tx, schema, table);
    const faults = await keepViews(tx, schema, viewsOf(warehouse));
    return { shape: await shapeOf(tx, warehouse), faults };
  });
}

/** Not `if not exists`: that requires the right to create even if an administrator has created the schema for us. */
export async function ensureSchema(tx: Queryable, schema: string): Promise<void> {
  const there = await tx.query(sql`select from pg_namespace where nspname = ${schema}`);
  if (there.length === 0) await tx.query(raw(`create schema ${quoteIdent(schema)}`));
}
