import type { Instant } from '../../model/instant.ts';
import { MAGIC, type ParquetFile } from './format/index.ts';

/**
 * Where in the next file everything stands. Some readers open a file twice: once to see how long it is and what is in it, and a moment
 * later, by its name, to read that. DuckDB is one, Spark another. For them the next file must be the present one as far as that goes:
 * its groups and its footer stay where they are, also those groups that are replaced, and what is new goes behind it, or where
 * the version before the present one had something. So each file holds two versions: the new one and the one before.
 */
interface Layout {
  /** What is copied from the present file, each to where it was. */
  readonly kept: readonly Stretch[];
  /** Where so many bytes have room. */
  place(length: number): number;
  /** Behind everything: where the footer goes. */
  end(): number;
}

export interface Stretch {
  start: number;
  end: number;
}

/** Room that is not used may be as large as what is; small files may have more of it. */
const SPARE_BYTES = 4 * 1024 * 1024;

export function createLayout(
  present: { file: ParquetFile; size: number },
  isCopied: (group: number) => boolean,
): Layout {
  const { groups, footerAt } = present.file;
  const used = groups.reduce((sum, { length }, i) => sum + (isCopied(i) ? length : 0), 0);
  const isWasteful = present.size - used > Math.max(SPARE_BYTES, used);
  return isWasteful ? freshLayout() : layoutAround([...groups, { start: footerAt, end: present.size }]);
}

/** Everything rewritten, without what was replaced: nothing that was erased may stay in a file. */
export const freshLayout = (): Layout => layoutAround([]);

function layoutAround(kept: readonly Stretch[]): Layout {
  const gaps: Stretch[] = [];
  let end = MAGIC.length;
  for (const stretch of [...kept].sort((a, b) => a.start - b.start)) {
    if (stretch.start > end) gaps.push({ start: end, end: stretch.start });
    end = stretch.end;
  }
  return {
    kept: kept.map(({ start, end: last }) => ({ start, end: last })),
    place(length) {
      const gap = gaps.find((room) => room.end - room.start >= length);
      if (!gap) {
        end += length;
        return end - length;
      }
      gap.start += length;
      return gap.start - length;
    },
    end: () => end,
  };
}

/** Large enough to compress and to be skipped by readers, small enough to be held in memory whole. */
export const GROUP_ROWS = 20_000;

/** A row group of the present file. */
export interface PresentGroup {
  rows: number;
  oldest: Instant;
  newest: Instant;
  /** Something in it changes: its bytes cannot be copied. */
  isTouched: boolean;
}

/** A stretch of the new file: a group copied as it is, or groups and new rows that are written together, in order of time. */
export type Segment<R> = { copy: number } | { groups: readonly number[]; added: readonly R[] };

/**
 * How a partition's next file is made of the present one. New rows go where their time belongs, so that the file stays sorted; groups
 * that they do not fall into are copied. Rows that follow all others make a group of their own, and join the one before as soon as
 * that is not larger: groups grow like the digits of a binary counter, so a row is written again only a few times before it comes
 * to rest in a large group, however small the batches are.
 */
export function planSegments<R>(
  groups: readonly PresentGroup[],
  added: ReadonlyArray<{ at: Instant; row: R }>,
): Segment<R>[] {
  const pieces: Piece<R>[] = [];
  let next = 0;
  /** The rows up to a moment, in order of time. */
  const takeBefore = (end: Instant): R[] => {
    const first = next;
    while (next < added.length && (added[next]?.at ?? end) < end) next++;
    return added.slice(first, next).map(({ row }) => row);
  };
  groups.forEach(({ rows, oldest, newest, isTouched }, i) => {
    const between = takeBefore(oldest);
    // A few rows before a group go into it: a group of their own would cost every reader more than they are worth.
    const isFew = between.length < rows && between.length + rows <= GROUP_ROWS;
    if (between.length > 0 && !isFew) pieces.push(newPiece(between));
    const inside = [...(isFew ? between : []), ...takeBefore(newest)];
    pieces.push({ groups: [i], added: inside, rows: rows + inside.length, isTouched: isTouched || inside.length > 0 });
  });
  const after = takeBefore(Number.POSITIVE_INFINITY);
  if (after.length > 0) pieces.push(newPiece(after));
  return grown(pieces).map((piece) =>
    piece.isTouched ? { groups: piece.groups, added: piece.added } : { copy: piece.groups[0] ?? 0 },
  );
}

interface Piece<R> {
  groups: number[];
  added: R[];
  rows: number;
  isTouched: boolean;
}

const newPiece = <R>(added: R[]): Piece<R> => ({ groups: [], added, rows: added.length, isTouched: true });

/** Joins what is written anyway with neighbours that are not larger, as far as one group holds them. */
function grown<R>(pieces: readonly Piece<R>[]): Piece<R>[] {
  const done: Piece<R>[] = [];
  for (const piece of pieces) {
    let last = piece;
    for (let before = done.at(-1); before && joins(before, last); before = done.at(-1)) {
      done.pop();
      last = join(before, last);
    }
    done.push(last);
  }
  return done;
}

function joins<R>(a: Piece<R>, b: Piece<R>): boolean {
  if (a.rows + b.rows > GROUP_ROWS) return false;
  return (a.isTouched && b.isTouched) || (b.isTouched && a.rows <= b.rows) || (a.isTouched && b.rows <= a.rows);
}

const join = <R>(a: Piece<R>, b: Piece<R>): Piece<R> => ({
  groups: [...a.groups, ...b.groups],
  added: [...a.added, ...b.added],
  rows: a.rows + b.rows,
  isTouched: true,
});

/** Cuts rows that are too many for one group into even parts: a full group and a crumb would be written again sooner. */
export function evenParts<R>(rows: readonly R[]): R[][] {
  const parts = Math.ceil(rows.length / GROUP_ROWS);
  const size = Math.ceil(rows.length / Math.max(1, parts));
  return Array.from({ length: parts }, (_, i) => rows.slice(i * size, (i + 1) * size));
}
