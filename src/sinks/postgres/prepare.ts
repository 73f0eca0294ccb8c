import type { Database, Queryable } from '../../cursor/database/index.ts';
import { quoteIdent } from '../../cursor/database/sql.ts';
import { ConfigError } from '../../model/errors.ts';
import { ENTITIES, STREAM_NAMES, STREAMS, type Stream } from '../../model/streams.ts';
import { keysTable } from './months.ts';
import { createReceipts, cursorCopy } from './receipts.ts';
import {
  alterTable,
  checkLayout,
  checkWidenable,
  comments,
  createIndexes,
  createTable,
  describeTable,
  entityTable,
  evolvedNames,
  lockSchema,
  type Partition,
  streamTable,
  type Table,
  tableComment,
} from './table.ts';
import { coverageView, dailyLinkPerformanceView, type View, viewComment, viewDefinition } from './views.ts';

export interface Warehouse {
  db: Database;
  schema: string;
  sink: string;
  /** The cursors are in this database too. */
  isStateHere: boolean;
  partition: Partition;
}

/** Makes or brings up to date everything that the sink needs: all tables and views, and this stream's in its present shape. */
export async function prepareWarehouse(warehouse: Warehouse, stream: Stream): Promise<void> {
  const { db, schema, sink, isStateHere, partition } = warehouse;
  await db.transaction(async (tx) => {
    await tx.query(lockSchema(schema));
    await ensureSchema(tx, schema);
    if (!isStateHere) {
      await tx.query({ text: createReceipts(schema) });
      await bringUpToDate(tx, schema, cursorCopy);
    }
    await bringUpToDate(tx, schema, streamTable(stream, partition), evolvedNames(stream));
    // The others in whatever shape they have by now, so long as the views find their columns.
    for (const name of STREAM_NAMES.filter((other) => other !== stream.name)) {
      await ensureTable(tx, schema, streamTable(STREAMS[name], partition));
    }
    if (partition !== 'none') {
      for (const name of STREAM_NAMES) await bringUpToDate(tx, schema, keysTable(STREAMS[name]));
    }
    for (const entity of ENTITIES) await bringUpToDate(tx, schema, entityTable(entity));
    for (const view of [coverageView(schema, sink, isStateHere), dailyLinkPerformanceView(schema)]) {
      await ensureView(tx, schema, view);
    }
  });
}

/** Not `if not exists`: that asks for the right to create even where an administrator has made the schema for us. */
async function ensureSchema(tx: Queryable, schema: string): Promise<void> {
  const there = await tx.query({ text: 'select 1 from pg_namespace where nspname = $1', values: [schema] });
  if (there.length === 0) await tx.query({ text: `create schema ${quoteIdent(schema)}` });
}

async function bringUpToDate(
  tx: Queryable,
  schema: string,
  table: Table,
  evolved?: ReadonlySet<string>,
): Promise<void> {
  const present = await describeTable(tx, schema, table.name);
  if (present) {
    checkLayout(schema, table, present);
    checkWidenable(table, present, evolved);
  }
  const change = present ? alterTable(schema, table, present) : createTable(schema, table);
  if (change === '' && present?.comment === tableComment(table)) return;
  try {
    await tx.query({ text: [change, createIndexes(schema, table), comments(schema, table)].join('\n') });
  } catch (error) {
    throw /^ *alter column .* type /m.test(change) ? inTheWay(error, schema, table) : error;
  }
}

/**
 * Postgres does not change the type of a column that a view of somebody's looks at. Told by the code: the words are in the language
 * of the server, and only decorate the message.
 */
function inTheWay(error: unknown, schema: string, { name }: Table): unknown {
  const { code, message, detail } = error as { code?: string; message?: string; detail?: string };
  if (code !== '0A000') return error;
  const [, user, column] = /^(?:rule \S+ on )?(.*) depends on column "(.*)"$/.exec(detail ?? '') ?? [];
  const who = user ?? 'what uses it';
  return new ConfigError(
    `column ${column ?? ''} of ${schema}.${name} must hold more than its type allows, and ${user ?? 'something'} uses it: ${user ? message : detail}`,
    {
      next: `drop ${who}, run again, and create it anew; or set unknownFields of the stream to extra, which leaves the columns as they are`,
      cause: error,
    },
  );
}

async function ensureTable(tx: Queryable, schema: string, table: Table): Promise<void> {
  const present = await describeTable(tx, schema, table.name);
  if (!present || alterTable(schema, table, present) !== '') await bringUpToDate(tx, schema, table);
}

async function ensureView(tx: Queryable, schema: string, view: View): Promise<void> {
  const present = await describeTable(tx, schema, view.name);
  if (present?.comment !== viewComment(view)) await tx.query({ text: viewDefinition(schema, view) });
}
