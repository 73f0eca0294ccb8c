import type { Instant } from '../../model/instant.ts';
import { MAGIC, type ParquetFile } from './format/index.ts';

/**
 * The layout of the next file. Some readers open a file twice: once to read its length and footer, and a moment
 * later, by its name, to read the rows; DuckDB and Spark do. For them the next file must contain the current one unchanged:
 * its groups and its footer stay where they are, replaced groups included, and new data goes after it, or where
 * the version before the current one had data. So each file holds two versions: the new one and the previous one.
 */
interface Layout {
  /** The parts copied from the current file, each to its old position. */
  readonly kept: readonly Stretch[];
  /** A position with room for this many bytes. */
  place(length: number): number;
  /** The position of the footer, after everything else. */
  end(): number;
}

export interface Stretch {
  start: number;
  end: number;
}

/** Unused space may be as large as used space; small files may have more of it. */
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

/** A fresh layout without replaced data: nothing that was erased may stay in a file. */
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

/** Large enough to compress well and to be skipped by readers, small enough to fit in memory. */
export const GROUP_ROWS = 20_000;

/** A row group of the current file. */
export interface PresentGroup {
  rows: number;
  oldest: Instant;
  newest: Instant;
  /** Some of its rows change, so its bytes cannot be copied. */
  isTouched: boolean;
}

/** A piece of the new file: a copied group, or groups and new rows that are written together, in order of time. */
export type Segment<R> = { copy: number } | { groups: readonly number[]; added: readonly R[] };

/**
 * How a partition's next file is made from the current one. New rows are inserted by time, so that the file stays sorted; groups
 * that they do not fall into are copied. Rows that follow all others form a new group, and are joined with the one before as soon as
 * that is not larger: groups grow like the digits of a binary counter, so a row is rewritten only a few times before it ends up
 * in a large group, however small the batches are.
 */
export function planSegments<R>(
  groups: readonly PresentGroup[],
  added: ReadonlyArray<{ at: Instant; row: R }>,
): Segment<R>[] {
  const pieces: Piece<R>[] = [];
  let next = 0;
  /** The rows up to a time, in order. */
  const takeBefore = (end: Instant): R[] => {
    const first = next;
    while (next < added.length && (added[next]?.at ?? end) < end) next++;
    return added.slice(first, next).map(({ row }) => row);
  };
  groups.forEach(({ rows, oldest, newest, isTouched }, i) => {
    const between = takeBefore(oldest);
    // A few rows before a group are added to it: a group of their own would cost every reader more.
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

/** Joins rewritten pieces with neighbours that are not larger, up to the size of a group. */
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

/** Cuts rows that exceed one group into even parts: a full group and a tiny one would be rewritten sooner. */
export function evenParts<R>(rows: readonly R[]): R[][] {
  const parts = Math.ceil(rows.length / GROUP_ROWS);
  const size = Math.ceil(rows.length / Math.max(1, parts));
  return Array.from({ length: parts }, (_, i) => rows.slice(i * size, (i + 1) * size));
}
