import type { Instant } from '../../model/instant.ts';
import { MAGIC, type ParquetFile } from '../parquet/format/index.ts';

/**
 * The layout of the next file. Some readers, such as DuckDB and Spark, open a file twice: once to read its length and footer, and a
 * moment later, by name, to read the rows. For them the next file must contain the current one unchanged: its row groups and its footer
 * keep their offsets, replaced row groups included, and new data goes after them or into gaps where the version before the current one
 * had data. So each file holds two versions: the new one and the previous one.
 */
export type Layout = ReturnType<typeof layoutAround>;

export interface ByteRange {
  start: number;
  end: number;
}

/** Unused space may be as large as used space, or this large in small files. */
const SPARE_BYTES = 4 * 1024 * 1024;

export function createLayout(present: { file: ParquetFile; size: number }, isCopied: (group: number) => boolean) {
  const { groups, footerAt } = present.file;
  const used = groups.reduce((sum, { length }, i) => sum + (isCopied(i) ? length : 0), 0);
  const isWasteful = present.size - used > Math.max(SPARE_BYTES, used);
  return isWasteful ? freshLayout() : layoutAround([...groups, { start: footerAt, end: present.size }]);
}

/** A layout without the previous version: erased data must not stay in a file. */
export const freshLayout = (): Layout => layoutAround([]);

function layoutAround(kept: readonly ByteRange[]) {
  const gaps: ByteRange[] = [];
  let end = MAGIC.length;
  for (const range of [...kept].sort((a, b) => a.start - b.start)) {
    if (range.start > end) gaps.push({ start: end, end: range.start });
    end = range.end;
  }
  return {
    /** Ranges copied from the current file at the same offset. */
    kept: kept.map(({ start, end: last }) => ({ start, end: last })),
    /** Allocates this many bytes and returns their offset. */
    allocate(length: number): number {
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

/** Large enough that row groups compress well and readers can skip them, small enough that one fits in memory. */
export const GROUP_ROWS = 20_000;

export interface PresentGroup {
  rows: number;
  oldest: Instant;
  newest: Instant;
  /** Some rows change, so the row group's bytes cannot be copied. */
  isTouched: boolean;
}

/** A part of the new file: a copied row group, or row groups and new rows that are written together, sorted by time. */
export type Segment<R> = { copy: number } | { groups: readonly number[]; added: readonly R[] };

/**
 * Plans a partition's next file from the current one. New rows are inserted by time, so that the file stays sorted; row groups without
 * new rows are copied. Rows after all others form a new row group, and four row groups of similar size are joined into one, so a row is
 * rewritten two or three times before it ends up in a large row group, however small the batches are.
 */
export function planSegments<R>(groups: readonly PresentGroup[], added: ReadonlyArray<{ at: Instant; row: R }>) {
  const pieces: Piece<R>[] = [];
  let next = 0;
  /** Takes the next rows before a time. */
  const takeBefore = (end: Instant): Added<R>[] => {
    const first = next;
    while (next < added.length && (added[next]?.at ?? end) < end) next++;
    return added.slice(first, next);
  };
  groups.forEach((group, i) => {
    const between = takeBefore(group.oldest);
    // A few rows before a row group are added to it: a row group of their own would cost every reader more.
    const isFew = between.length * FEW < group.rows && between.length + group.rows <= GROUP_ROWS;
    if (!isFew) pieces.push(...runsOf(between));
    const inserted = [...(isFew ? between : []), ...takeBefore(group.newest)];
    pieces.push({
      groups: [i],
      added: inserted.map(({ row }) => row),
      rows: group.rows + inserted.length,
      oldest: Math.min(group.oldest, inserted[0]?.at ?? group.oldest),
      newest: group.newest,
      isTouched: group.isTouched || inserted.length > 0,
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

/** Fewer rows than an eighth of a row group are few. */
const FEW = 8;
/** Row groups of similar size that are joined into one. */
const MANY = 4;
/** Fewer rows are never kept apart: rare events are hours apart, too. */
const RUN_ROWS = 500;
/** Eight ranges written in parallel have at most 24 row groups; one more is allowed per 5000 rows. Beyond that none are kept apart. */
const MOST_APART = 24;
const ROWS_PER_EXTRA = 5000;

/** A first sync reads several ranges of a day in parallel, so rows after a gap longer than the run before it start a new run. */
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

/** Joins pieces with the ones before them, up to the size of a row group. */
function joined<R>(pieces: readonly Piece<R>[]): Piece<R>[] {
  const rows = pieces.reduce((sum, piece) => sum + piece.rows, 0);
  // Events that come in bursts would stay apart for good.
  const isTooMany = pieces.length > MOST_APART + rows / ROWS_PER_EXTRA;
  const done: Piece<R>[] = [];
  for (const piece of pieces) {
    done.push(piece);
    for (let n = toJoin(done, isTooMany); n > 1; n = toJoin(done, isTooMany)) done.push(done.splice(-n).reduce(join));
  }
  return done;
}

/** How many of the last pieces to join into one; 1 for none. */
function toJoin<R>(done: readonly Piece<R>[], isTooMany: boolean): number {
  let [n, rows, largest, isTouched, most] = [0, 0, 0, false, 1];
  for (let i = done.length - 1; i >= 0; i--) {
    const piece = done[i] as Piece<R>;
    const after = done[i + 1];
    n += 1;
    rows += piece.rows;
    largest = Math.max(largest, piece.rows);
    isTouched ||= piece.isTouched;
    if (rows > GROUP_ROWS || (after && !isTooMany && isApart(piece, after))) break;
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

/** Splits rows that exceed one row group evenly: of a full row group and a tiny one, the tiny one would soon be rewritten. */
export function evenParts<R>(rows: readonly R[]): R[][] {
  const parts = Math.ceil(rows.length / GROUP_ROWS);
  const size = Math.ceil(rows.length / Math.max(1, parts));
  return Array.from({ length: parts }, (_, i) => rows.slice(i * size, (i + 1) * size));
}
