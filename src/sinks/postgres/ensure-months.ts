import type { Database, Queryable } from '../../cursor/database.ts';
import { ConfigError } from '../../model/errors.ts';
import type { Instant } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import { createMonth, type Month, monthsOf, monthTable, selectMonths } from './months.ts';
import { lockSchema } from './table.ts';

/**
 * Makes the partitions that rows of these times need. In a transaction of its own and before the rows': the locks end at once, and
 * a partition that stays empty because the batch failed harms nobody.
 */
export async function ensureMonths(
  db: Database,
  schema: string,
  stream: StreamName,
  instants: Iterable<Instant>,
): Promise<void> {
  const needed = monthsOf(instants);
  if (needed.length === 0 || (await missing(db, schema, stream, needed)).length === 0) return;
  await db.transaction(async (tx) => {
    await tx.query(lockSchema(schema));
    // Once more behind the lock: another process may have made them meanwhile.
    for (const month of await missing(tx, schema, stream, needed)) {
      await tx.query({ text: createMonth(schema, stream, month) });
    }
  });
}

async function missing(db: Queryable, schema: string, stream: StreamName, needed: readonly Month[]): Promise<Month[]> {
  const found = await db.query<{ name: string; attached: boolean }>(selectMonths(schema, stream, needed));
  const astray = found.find(({ attached }) => !attached)?.name;
  if (astray !== undefined) {
    throw new ConfigError(`${schema}.${astray} is in the way: it is a table, and no partition of ${stream}`, {
      kept: 'nothing was written; the cursor stays where it was',
      next: `if it was detached, attach it again or rename it; then run again`,
    });
  }
  const names = new Set(found.map(({ name }) => name));
  return needed.filter((month) => !names.has(monthTable(stream, month)));
}
