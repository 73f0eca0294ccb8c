import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';

/** What was asked for, as far as it has happened: rows far outside of it cannot say where a page ends. */
export interface Asked {
  from: Instant;
  until: Instant;
}

/** Services widen what they are asked for to whole days, and days begin at different times around the world. */
const WIDENED_MS = 2 * 86_400_000;

/**
 * The rows of a page whose times cannot be what the service sorted by, given in its own order, oldest first. One record with a
 * garbled clock (1970, 2099) in the middle of a page would otherwise be its edge, and prove everything up to there complete.
 * Such rows are stored like any other and prove nothing.
 */
export function straysOf(rows: readonly Row[], { from, until }: Asked): Set<Row> {
  const line = longestLine(rows);
  const [first, second] = line;
  const [last, beforeLast] = [line.at(-1), line.at(-2)];
  // At the very edge a lie is in order too; that it is one shows only where it left the question and its neighbour did not.
  if (first && second && first.at < from - WIDENED_MS && second.at >= from - WIDENED_MS) line.shift();
  if (last && beforeLast && last.at > until + WIDENED_MS && beforeLast.at <= until + WIDENED_MS) line.pop();
  const inLine = new Set(line);
  return new Set(rows.filter((row) => !inLine.has(row)));
}

/** As many rows as possible that never go back in time. Nearly every page is in order as a whole, and is taken as it is. */
function longestLine(rows: readonly Row[]): Row[] {
  if (rows.every((row, i) => i === 0 || row.at >= (rows[i - 1]?.at ?? row.at))) return [...rows];
  /** The row that ends the line of each length with the smallest time, and for every row the one before it in its line. */
  const ends: Row[] = [];
  const before = new Map<Row, Row | undefined>();
  for (const row of rows) {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle]?.at ?? 0) <= row.at) low = middle + 1;
      else high = middle;
    }
    before.set(row, ends[low - 1]);
    ends[low] = row;
  }
  const line: Row[] = [];
  for (let row = ends.at(-1); row; row = before.get(row)) line.push(row);
  return line.reverse();
}
