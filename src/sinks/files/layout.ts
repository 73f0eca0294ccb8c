import type { Instant } from '../../model/instant.ts';
import { MAGIC, type ParquetFile } from '../parquet/format/index.ts';

/**
 * The layout of the next file. Some readers open a file twice: once to read its length and footer, and a moment
 * later, by its name, to read the rows; DuckDB and Spark do. For them the next file must contain the current one unchanged:
 * its groups and its footer stay where they are, replaced groups included, and new data goes after it, or where
 * the version before the current one had data. So each file holds two versions: the new one and the previous one.
 */
export type Layout = ReturnType<typeof layoutAround>;

export interface ByteRange {
  start: number;
  end: number;
}

/** Unused space may be as large as used space; small files may have more of it. */
const SPARE_BYTES = 4 * 1024 * 1024;

export function createLayout(present: { file: ParquetFile; size: number }, isCopied: (group: number) => boolean) {
  const { groups, footerAt } = present.file;
  const used = groups.reduce((sum, { length }, i) => sum + (isCopied(i) ? length : 0), 0);
  const isWasteful = present.size - used > Math.max(SPARE_BYTES, used);
  return isWasteful ? freshLayout() : layoutAround([...groups, { start: footerAt, end: present.size }]);
}

/** A fresh layout without replaced data: nothing that was erased may stay in a file. */
export const freshLayout = (): Layout => layoutAround([]);

function layoutAround(kept: readonly ByteRange[]) {
  const gaps: ByteRange[] = [];
  let end = MAGIC.length;
  for (const range of [...kept].sort((a, b) => a.start - b.start)) {
    if (range.start > end) gaps.push({ start: end, end: range.start });
    end = range.end;
  }
  return {
    /** The parts copied from the current file, each to its old position. */
    kept: kept.map(({ start, end: last }) => ({ start, end: last })),
    /** A position with room for this many bytes. */
    place(length: number): number {
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
 * that they do not fall into are copied. Rows that follow all others form a new group, and four groups of like size are joined into
 * one: so a row is rewritten two or three times before it ends up in a large group, however small the batches are.
 */
export function planSegments<R>(groups: readonly PresentGroup[], added: ReadonlyArray<{ at: Instant; row: R }>) {
  const pieces: Piece<R>[] = [];
  let next = 0;
  /** The rows up to a time, in order. */
  const takeBefore = (end: Instant): Added<R>[] => {
    const first = next;
    while (next < added.length && (added[next]?.at ?? end) < end) next++;
    return added.slice(first, next);
  };
  groups.forEach((group, i) => {
    const between = takeBefore(group.oldest);
    // A few rows before a group are added to it: a group of their own would cost every reader more.
    const isFew = between.length * FEW < group.rows && between.length + group.rows <= GROUP_ROWS;
    if (!isFew) pieces.push(...runsOf(between));
    const inside = [...(isFew ? between : []), ...takeBefore(group.newest)];
    pieces.push({
      groups: [i],
      added: inside.map(({ row }) => row),
      rows: group.rows + inside.length,
      oldest: Math.min(group.oldest, inside[0]?.at ?? group.oldest),
      newest: group.newest,
      isTouched: group.isTouched || inside.length > 0,
    });
  });
  pieces.push(...runsOf(takeBefore(Number.POSITIVE_INFINITY)));
  return joined(pieces).map((piece) =>
    piece.isTouched ? { groups: piece.groups, added: piece.added } : { copy: piece.groups[0] ?? 0 },
  );
}

interface Added<R> {
  at: Instant;
  row: R;
}

interface Piece<R> extends PresentGroup {
  groups: number[];
  added: R[];
}

/** Less than this part of a group is few. */
const FEW = 8;
/** Groups of like size that become one. */
const MANY = 4;
/** Fewer rows are never kept apart: rare events are hours apart, too. */
const RUN_ROWS = 500;
/** What eight stretches have at most, side by side, and what a file may have beyond that. With more groups none are kept apart. */
const CROWD = 24;
const CROWD_ROWS = 5000;

/** A first sync reads several stretches of a day side by side: rows behind a longer pause are kept apart. */
function runsOf<R>(rows: readonly Added<R>[]): Piece<R>[] {
  const runs: Piece<R>[] = [];
  for (const { at, row } of rows) {
    const last = runs.at(-1);
    if (!last || (last.rows >= RUN_ROWS && at - last.newest > last.newest - last.oldest)) {
      runs.push({ groups: [], added: [row], rows: 1, oldest: at, newest: at, isTouched: true });
    } else {
      last.added.push(row);
      last.rows += 1;
      last.newest = at;
    }
  }
  return runs;
}

const isApart = (a: PresentGroup, b: PresentGroup): boolean =>
  Math.min(a.rows, b.rows) >= RUN_ROWS && b.oldest - a.newest > Math.min(a.newest - a.oldest, b.newest - b.oldest);

/** Joins pieces with those before them, up to the size of a group. */
function joined<R>(pieces: readonly Piece<R>[]): Piece<R>[] {
  const rows = pieces.reduce((sum, piece) => sum + piece.rows, 0);
  // Events that come in bursts are apart for good.
  const isCrowded = pieces.length > CROWD + rows / CROWD_ROWS;
  const done: Piece<R>[] = [];
  for (const piece of pieces) {
    done.push(piece);
    for (let n = toJoin(done, isCrowded); n > 1; n = toJoin(done, isCrowded)) done.push(done.splice(-n).reduce(join));
  }
  return done;
}

/** How many of the last pieces become one; one, if none do. */
function toJoin<R>(done: readonly Piece<R>[], isCrowded: boolean): number {
  let [n, rows, largest, isTouched, most] = [0, 0, 0, false, 1];
  for (let i = done.length - 1; i >= 0; i--) {
    const piece = done[i] as Piece<R>;
    const after = done[i + 1];
    n += 1;
    rows += piece.rows;
    largest = Math.max(largest, piece.rows);
    isTouched ||= piece.isTouched;
    if (rows > GROUP_ROWS || (after && !isCrowded && isApart(piece, after))) break;
    if (n >= MANY && largest <= rows / 2 && isTouched) most = n;
  }
  return most;
}

const join = <R>(a: Piece<R>, b: Piece<R>): Piece<R> => ({
  groups: [...a.groups, ...b.groups],
  added: [...a.added, ...b.added],
  rows: a.rows + b.rows,
  oldest: a.oldest,
  newest: b.newest,
  isTouched: true,
});

/** Cuts rows that exceed one group into even parts: a full group and a tiny one would be rewritten sooner. */
export function evenParts<R>(rows: readonly R[]): R[][] {
  const parts = Math.ceil(rows.length / GROUP_ROWS);
  const size = Math.ceil(rows.length / Math.max(1, parts));
  return Array.from({ length: parts }, (_, i) => rows.slice(i * size, (i + 1) * size));
}
