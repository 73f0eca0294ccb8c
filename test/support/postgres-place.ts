import { afterAll, beforeAll } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { instantOf, quoteIdent } from '../../src/cursor/database/sql.ts';
import { MIGRATIONS } from '../../src/cursor/migrations/index.ts';
import { migrate } from '../../src/cursor/migrations/migrate.ts';
import type { Kind, Value } from '../../src/model/columns.ts';
import { parseJson } from '../../src/model/json.ts';
import { BOOKKEEPING, type Stream } from '../../src/model/streams.ts';
import { createPostgresSink, type PostgresSink } from '../../src/sinks/postgres/postgres-sink.ts';
import type { Partition } from '../../src/sinks/postgres/table.ts';
import { freshDatabase, stateDatabase } from './postgres.ts';
import type { SinkPlace, StoredRow } from './sink-harness.ts';

export interface PostgresPlace extends SinkPlace {
  db: Database;
  createSink(): PostgresSink;
}

/** An ordinary name for Postgres if quoted, and SQL if not. */
export const ODD_SCHEMA = 'odd "schema"; -- $1';

/** A new database, with the state in it or in another. */
export async function postgresPlace({
  sameDatabase = true,
  schema = ODD_SCHEMA,
  partition = 'none',
  server,
}: {
  sameDatabase?: boolean;
  schema?: string;
  partition?: Partition;
  server?: string;
} = {}): Promise<PostgresPlace> {
  const databases = [server === undefined ? await stateDatabase() : await freshDatabase(server)];
  if (!sameDatabase) databases.push(await freshDatabase(server));
  const [first, second] = databases.map(({ url }) => connect({ url }));
  if (!first) throw new Error('no database');
  const [state, db] = [first, second ?? first];
  // Another server has no template.
  if (server !== undefined) await migrate(state, MIGRATIONS, { schema: 'tributary' });
  return {
    state,
    db,
    createSink: () => createPostgresSink({ name: 'warehouse', db, schema, state, partition }),
    readRows: (stream) => readTable(db, schema, stream),
    async close() {
      await first.close();
      await second?.close();
      for (const database of databases) await database.drop();
    },
  };
}

export async function readTable(db: Database, schema: string, stream: Stream): Promise<StoredRow[]> {
  const columns = [...stream.columns, ...BOOKKEEPING];
  const list = columns.map(({ name, kind }) => `${READ[kind](quoteIdent(name))} as ${quoteIdent(name)}`);
  const rows = await db.query<StoredRow>({
    text: `select ${list.join(', ')} from ${quoteIdent(schema)}.${quoteIdent(stream.name)}`,
  });
  const json = columns.filter(({ kind }) => kind === 'json').map(({ name }) => name);
  const numbers = columns.filter(({ kind }) => kind === 'number').map(({ name }) => name);
  for (const row of rows) {
    for (const name of numbers) if (typeof row[name] === 'string') row[name] = exactNumber(row[name]);
    for (const name of json) if (typeof row[name] === 'string') row[name] = parseJson(row[name]) as Value;
  }
  return rows;
}

function exactNumber(text: string): Value {
  const number = Number(text);
  return text.includes('.') || Number.isSafeInteger(number) ? number : BigInt(text);
}

/** As text: pg would truncate instants to milliseconds and integers inside JSON to doubles. */
const READ: Readonly<Record<Kind, (column: string) => string>> = {
  text: (column) => column,
  integer: (column) => column,
  number: (column) => `${column}::text`,
  boolean: (column) => column,
  timestamp: (column) => `${instantOf(column)}`,
  json: (column) => `${column}::text`,
};

/** Opened before the tests of a file, and closed after them. */
export function ofFile<T>(open: () => Promise<T>, close: (opened: T) => Promise<void>): () => T {
  let opened: { it: T } | undefined;
  beforeAll(async () => {
    opened = { it: await open() };
  });
  afterAll(() => opened && close(opened.it));
  return () => {
    if (!opened) throw new Error('not open yet');
    return opened.it;
  };
}
