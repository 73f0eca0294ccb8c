import { isDeepStrictEqual } from 'node:util';
import { type Instant, toIso } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import { DAY_MS, daysOf, type Entry, gaps, type Window } from '../../model/window.ts';
import type { Queryable } from '../database/index.ts';
import { instantOf, raw, type Sql, sql } from '../database/sql.ts';

/** A stream of a source in one sink. Each feed has its own cursor and ledger. */
export interface Feed {
  source: string;
  stream: StreamName;
  sink: string;
}

/** Counts rows of the sink. Used sparingly: commits add their changes to `rows` of a window, and only time without a window is counted. */
export type CountRows = (windows: readonly Window[]) => Promise<number[]>;

export interface RowChanges {
  /** The times of rows that the sink did not have at that time before: new rows, and the new times of moved rows. */
  added: readonly Instant[];
  removed: readonly Instant[];
}

export interface SinkRows extends RowChanges {
  count: CountRows;
  /** An earlier commit was interrupted between data and state: the rows it wrote are unknown, so all windows are counted. */
  isAfterCrash?: boolean;
}

export const ofFeed = ({ source, stream, sink }: Record<keyof Feed, string>): Sql =>
  sql`source = ${source} and stream = ${stream} and sink = ${sink}`;

export async function carryRows(tx: Queryable, feed: Feed, { added, removed }: RowChanges): Promise<void> {
  const moves = [...added.map((at) => ({ at, by: 1 })), ...removed.map((at) => ({ at, by: -1 }))];
  const [first, last] = [moves.sort((a, b) => a.at - b.at)[0], moves.at(-1)];
  if (!first || !last) return;
  const windows = await readRows(tx, feed, { start: first.at, end: last.at + 1 }, 'for update');
  const numbers = new Map<CountedWindow, number>();
  let i = 0;
  for (const { at, by } of moves) {
    while ((windows[i]?.end ?? Number.POSITIVE_INFINITY) <= at) i++;
    const window = windows[i];
    if (window && window.start <= at) numbers.set(window, (numbers.get(window) ?? window.rows) + by);
  }
  await writeRows(tx, feed, numbers);
}

/** The row counts of windows that were split and merged: counts of known windows are reused, and the rest is counted. */
async function countEntries(entries: readonly Entry[], known: readonly Entry[], count: CountRows): Promise<Entry[]> {
  const rows = entries.map(() => 0);
  const toCount: Array<Window & { add(n: number): void }> = [];
  const addRows = (i: number, n: number): void => {
    rows[i] = (rows[i] ?? 0) + n;
  };
  for (const before of known) {
    // Of a split window, all pieces but the longest are counted; the longest gets the remaining rows.
    const pieces = entries
      .map(({ start, end }, i) => ({ i, start: Math.max(start, before.start), end: Math.min(end, before.end) }))
      .filter(({ start, end }) => start < end)
      .sort((a, b) => b.end - b.start - (a.end - a.start));
    const [longest, ...others] = pieces;
    if (longest) addRows(longest.i, before.rows);
    for (const { i, start, end } of others) {
      const add = (n: number): void => {
        addRows(i, n);
        addRows(longest?.i ?? i, -n);
      };
      toCount.push({ start, end, add });
    }
  }
  for (const [i, entry] of entries.entries()) {
    for (const { start, end } of gaps(known, entry)) toCount.push({ start, end, add: (n) => addRows(i, n) });
  }
  const numbers = toCount.length === 0 ? [] : await count(toCount);
  for (const [n, { add }] of toCount.entries()) add(numbers[n] ?? 0);
  return entries.map((entry, i) => ({ ...entry, rows: rows[i] ?? 0 }));
}

/** Longer windows span years with hardly any rows and are not split. */
const LONGEST_MS = 400 * DAY_MS;

/** Also splits windows at midnight UTC, so that the ledger has the rows of each day. Windows with a note are not split. */
export async function countByDay(
  entries: readonly Entry[],
  known: readonly Entry[],
  count: CountRows,
): Promise<Entry[]> {
  const counted = await countEntries(entries, known, count);
  const isSplit = ({ certified, rows, note, start, end }: Entry): boolean =>
    certified && rows > 0 && note === undefined && end - start <= LONGEST_MS;
  const days = counted.flatMap((entry) => (isSplit(entry) ? daysOf(entry) : [entry]));
  return countEntries(days, counted, count);
}

export interface CountedWindow extends Window {
  rows: number;
}

export interface Miscount extends Window {
  ledger: number;
  sink: number;
}

/** Compares the row counts of all windows that overlap a range with the sink. Counts twice, as a commit may interfere with the first. */
export async function findMiscounts(db: Queryable, feed: Feed, range: Window, count: CountRows): Promise<Miscount[]> {
  const compare = async (): Promise<Miscount[]> => {
    const wrong = await countAgain(await readRows(db, feed, range), count);
    return [...wrong].map(([{ start, end, rows }, sink]) => ({ start, end, ledger: rows, sink }));
  };
  const first = await compare();
  const again = first.length === 0 ? [] : await compare();
  return again.filter((one) => first.some((other) => isDeepStrictEqual(one, other)));
}

/** Corrects the row counts of windows that overlap a range: all, or only those not certified. Its row locks make commits wait. */
export async function recountRows(
  tx: Queryable,
  feed: Feed,
  range: Window,
  count: CountRows,
  { isOpenOnly = false } = {},
): Promise<void> {
  const which = isOpenOnly ? `and state <> 'certified'` : '';
  await writeRows(tx, feed, await countAgain(await readRows(tx, feed, range, 'for update', which), count));
}

async function countAgain(windows: readonly CountedWindow[], count: CountRows): Promise<Map<CountedWindow, number>> {
  const numbers = windows.length === 0 ? [] : await count(windows);
  return new Map(windows.flatMap((window, i) => (numbers[i] === window.rows ? [] : [[window, numbers[i] ?? 0]])));
}

/** `for update`, so that a commit and a recount never write over each other. */
const readRows = (db: Queryable, feed: Feed, { start, end }: Window, lock = '', which = ''): Promise<CountedWindow[]> =>
  db.query<CountedWindow>(sql`
    select ${instantOf('start_at')} as start, ${instantOf('end_at')} as "end", rows from tributary.windows
    where ${ofFeed(feed)} and end_at > ${boundOf(start, '-infinity')} and start_at < ${boundOf(end, 'infinity')}
      ${raw(which)} order by start_at ${raw(lock)}`);

/** Postgres does not parse ISO texts with years of more than four digits. */
const boundOf = (at: Instant, infinite: string): string => (Math.abs(at) < YEAR_10000 ? toIso(at) : infinite);

const YEAR_10000 = Date.UTC(10_000, 0);

async function writeRows(tx: Queryable, feed: Feed, numbers: ReadonlyMap<Window, number>): Promise<void> {
  if (numbers.size === 0) return;
  const starts = [...numbers.keys()].map(({ start }) => toIso(start));
  await tx.query(sql`
    update tributary.windows w set rows = n.rows
    from unnest(${starts}::timestamptz[], ${[...numbers.values()]}::bigint[]) as n (start_at, rows)
    where ${ofFeed(feed)} and w.start_at = n.start_at`);
}
