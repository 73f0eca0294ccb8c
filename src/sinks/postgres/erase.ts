import type { Database, Queryable } from '../../cursor/database/index.ts';
import { instantOf, quoteIdent } from '../../cursor/database/sql.ts';
import { isEmptied } from '../../model/forgotten.ts';
import { fitId } from '../../model/identity.ts';
import type { Instant } from '../../model/instant.ts';
import { BOOKKEEPING, ENTITIES, STREAM_NAMES } from '../../model/streams.ts';
import type { Erasure } from '../sink.ts';
import { keysName } from './months.ts';
import { describeTable } from './table.ts';

/** How many rows of which table were touched. */
type Touched = Record<string, number>;

/**
 * One transaction. Tables that do not exist are skipped: not every stream may have been synced. Also returns the times of deleted
 * clicks, for the ledger.
 */
export async function erase(
  db: Database,
  schema: string,
  erasure: Erasure,
): Promise<{ touched: Touched; clicks: Instant[] }> {
  return db.transaction(async (tx) => {
    const touched: Touched = {};
    const clicks: Instant[] = [];
    for (const change of changesFor(erasure)) {
      const present = await columnsOf(tx, schema, change.table);
      if (!present) continue;
      const place = `${quoteIdent(schema)}.${quoteIdent(change.table)}`;
      const done = await tx.query<{ at?: Instant }>({
        text: textOf(change, place, present),
        values: change.where.map(([, value]) => value),
      });
      touched[`${schema}.${change.table}`] = done.length;
      if (change.table === 'clicks') clicks.push(...done.flatMap(({ at }) => at ?? []));
    }
    return { touched, clicks };
  });
}

interface Change {
  table: string;
  where: ReadonlyArray<readonly [column: string, value: string]>;
  /** Which columns are emptied; without it the row is deleted. */
  empties?: (column: string) => boolean;
}

const EVENTS_OF_CUSTOMERS = ['leads', 'sales'] as const;

function changesFor(erasure: Erasure): Change[] {
  const { source, kind } = erasure;
  if (kind === 'source') {
    return [
      ...[...STREAM_NAMES, ...STREAM_NAMES.map(keysName), ...ENTITIES.map(({ name }) => name)].map((table) => ({
        table,
        where: [['_source', source]] as const,
      })),
      ...['_receipts', '_cursors', '_days'].map((table) => ({ table, where: [['source', source]] as const })),
    ];
  }
  const { id } = erasure;
  const of = (column: string, value = id): Change['where'] => [
    ['_source', source],
    [column, value],
  ];
  return [
    ...(kind === 'customer'
      ? [{ table: 'customers', where: of('customer_id') }]
      : ['clicks', keysName('clicks')].map((table) => ({ table, where: of('event_id', fitId(id)) }))),
    ...EVENTS_OF_CUSTOMERS.map((table) => ({ table, where: of(`${kind}_id`), empties: isEmptied(kind, table) })),
  ];
}

/** Bookkeeping columns stay, except `_extra`, which holds values of the service. */
const KEPT: ReadonlySet<string> = new Set(BOOKKEEPING.map(({ name }) => name).filter((name) => name !== '_extra'));

function textOf({ where, empties }: Change, place: string, columns: readonly string[]): string {
  const condition = where.map(([column], i) => `${quoteIdent(column)} = $${i + 1}`).join(' and ');
  if (!empties) {
    const time = columns.includes('timestamp') ? `${instantOf('"timestamp"')} as at` : '1';
    return `delete from ${place} where ${condition} returning ${time}`;
  }
  // From the table as it is: evolved columns may hold personal data as well as declared ones.
  const sets = columns
    .filter((column) => !KEPT.has(column) && empties(column))
    .map((column) => `${quoteIdent(column)} = null`);
  return `update ${place} set ${[...sets, '_synced_at = now()'].join(', ')} where ${condition} returning 1`;
}

async function columnsOf(tx: Queryable, schema: string, table: string): Promise<string[] | undefined> {
  const present = await describeTable(tx, schema, table);
  return present && Object.keys(present.columns);
}
