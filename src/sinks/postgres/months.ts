import type { Database, Queryable } from '../../cursor/database/index.ts';
import { nameIn, quoteIdent, quoteLiteral, raw, type Sql, sql } from '../../cursor/database/sql.ts';
import type { Kind } from '../../model/columns.ts';
import { ConfigError } from '../../model/errors.ts';
import type { Instant } from '../../model/instant.ts';
import type { Stream, StreamName } from '../../model/streams.ts';
import { POSTGRES_TYPES } from '../table-columns.ts';
import { lockSchema, type Table } from './table.ts';

interface StreamTable {
  schema: string;
  stream: StreamName;
}

/** One partition: the events of a range of time. */
export interface Month {
  suffix: string;
  from: string | undefined;
  to: string | undefined;
}

/** Wrong clocks must not make many partitions. There is no default partition, because creating a month beside it locks and scans it. */
const FIRST_YEAR = 2000;
const END_YEAR = 2100;

function monthOf(at: Instant): Month {
  // Rounded to microseconds as in Postgres: the last instant of a month may be rounded into the next one.
  const date = new Date(Math.floor(Math.round(at * 1000) / 1000));
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  if (year < FIRST_YEAR) return { suffix: `before_${FIRST_YEAR}`, from: undefined, to: startOf(FIRST_YEAR, 0) };
  if (year >= END_YEAR) return { suffix: `from_${END_YEAR}`, from: startOf(END_YEAR, 0), to: undefined };
  return {
    suffix: `${year}_${String(month + 1).padStart(2, '0')}`,
    from: startOf(year, month),
    to: startOf(year, month + 1),
  };
}

const startOf = (year: number, month: number): string => new Date(Date.UTC(year, month)).toISOString();

export function monthsOf(instants: readonly Instant[]): Month[] {
  const months = new Map(instants.map(monthOf).map((month) => [month.suffix, month]));
  return [...months.values()].sort((a, b) => ((a.from ?? '') < (b.from ?? '') ? -1 : 1));
}

/** A condition by which the planner skips all other partitions. */
export const isWithin = (column: string, months: readonly Month[]): string =>
  months
    .map(({ from, to }) =>
      [from && `${column} >= ${quoteLiteral(from)}`, to && `${column} < ${quoteLiteral(to)}`]
        .filter(Boolean)
        .join(' and '),
    )
    .map((range) => `(${range})`)
    .join(' or ');

export const monthTable = (stream: StreamName, { suffix }: Month): string => `${stream}_${suffix}`;

/** Created first, then attached: `create table … partition of` would wait for every reader of the stream and block new ones. */
function createMonth({ schema, stream }: StreamTable, month: Month): Sql {
  const [whole, part] = [nameIn(schema, stream), nameIn(schema, monthTable(stream, month))];
  const [from, to] = [month.from && quoteLiteral(month.from), month.to && quoteLiteral(month.to)];
  return raw(`
    create table ${part} (like ${whole} including defaults);
    alter table ${whole} attach partition ${part} for values from (${from ?? 'minvalue'}) to (${to ?? 'maxvalue'});
    comment on table ${part} is ${quoteLiteral(`A part of ${stream}, which shows all of them.`)};`);
}

/** Runs before the rows' own transaction, so that the locks end at once. A partition that stays empty does no harm. */
export async function ensureMonths(db: Database, table: StreamTable, instants: readonly Instant[]): Promise<void> {
  const needed = monthsOf(instants);
  if (needed.length === 0 || (await missingMonths(db, table, needed)).length === 0) return;
  await db.transaction(async (tx) => {
    await tx.query(lockSchema(table.schema));
    // Checked again under the lock, because another process may have created them in between.
    for (const month of await missingMonths(tx, table, needed)) await tx.query(createMonth(table, month));
  });
}

async function missingMonths(db: Queryable, { schema, stream }: StreamTable, needed: readonly Month[]) {
  const wanted = needed.map((month) => monthTable(stream, month));
  const found = await db.query<{ name: string; attached: boolean }>(sql`
    select c.relname::text as name, coalesce(i.inhparent = p.oid, false) as attached
    from pg_class p join pg_class c on c.relnamespace = p.relnamespace
    left join pg_inherits i on i.inhrelid = c.oid and i.inhparent = p.oid
    where p.relnamespace = (select oid from pg_namespace where nspname = ${schema}) and p.relname = ${stream}
      and c.relname = any(${wanted})`);
  const detached = found.find(({ attached }) => !attached)?.name;
  if (detached !== undefined) {
    throw new ConfigError(`${schema}.${detached} exists as a table, but is not a partition of ${stream}`, {
      kept: 'nothing was written; the cursor stays where it was',
      next: `if it was detached, attach it again or rename it; then run again`,
    });
  }
  const names = new Set(found.map(({ name }) => name));
  return needed.filter((month) => !names.has(monthTable(stream, month)));
}

/** A unique key of a partitioned table must include the partition column, so every write goes through a table of all keys. */
export const keysName = (stream: StreamName): string => `_${stream}_keys`;

const COLUMNS = [
  { name: '_source', kind: 'text', doc: 'Source, as named in the config.' },
  { name: 'event_id', kind: 'text', doc: 'Id of the event.' },
  { name: 'timestamp', kind: 'timestamp', doc: 'Its time, which says in which partition it is.' },
] as const satisfies ReadonlyArray<{ name: string; kind: Kind; doc: string }>;

export const KEY_KINDS: readonly Kind[] = COLUMNS.map(({ kind }) => kind);

export const keysTable = ({ name }: Stream): Table => ({
  name: keysName(name),
  doc: `The keys of ${name} over all its partitions.`,
  key: ['_source', 'event_id'],
  columns: COLUMNS.map(({ name, kind, doc }) => ({ name, type: POSTGRES_TYPES[kind], nullable: false, comment: doc })),
  indexes: [],
});

export const qualifiedKeys = (schema: string, { name }: Stream): Sql => nameIn(schema, keysName(name));

export const copyIntoKeys = (schema: string, stream: Stream): string =>
  `copy ${qualifiedKeys(schema, stream)} (${COLUMNS.map(({ name }) => quoteIdent(name)).join(', ')}) from stdin (format binary)`;
