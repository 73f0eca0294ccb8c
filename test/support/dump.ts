import type { Queryable } from '../../src/cursor/database/index.ts';

/** The contents of a database as text, for tests that a value is nowhere. */
export async function dump(db: Queryable): Promise<string> {
  const tables = await db.query<{ read: string }>({
    text: `
      select format('select %L || t::text as row from %I.%I t', relname || ' ', nspname, relname) as read
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where relkind in ('r', 'p', 'm') and nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`,
  });
  const rows = await Promise.all(tables.map(({ read }) => db.query<{ row: string }>({ text: read })));
  return rows
    .flat()
    .map(({ row }) => row)
    .join('\n');
}

/** The lines with a text, each with its table: a failure shows the leak. */
export const linesWith = (dumped: string, text: string | RegExp): string[] =>
  dumped.split('\n').filter((line) => line.search(text) >= 0);
