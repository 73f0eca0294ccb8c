import type { Instant } from '../../model/instant.ts';
import { HOUR_MS } from '../../model/window.ts';
import type { Interval, Observation, Stamped } from './answer.ts';
import { lengthOf, NARROW_MS } from './cover.ts';

/** The number of rows at either edge of an answer that are remembered, to be looked for on later ones. */
const EDGE_ROWS = 20;
const MOST_REMEMBERED = 800;
/** How many first and last pages are kept whole, and the share of their rows, one in `LEFT_OUT`, that another page may lack. */
const PAGES_KEPT = 3;
const LEFT_OUT = 10;
/** Rows younger than this may have arrived late in between. */
const LATE_MS = HOUR_MS;
/** A question is longer if it is `LONGER` times as long; after this many rows left out by longer ones, those are not trusted. */
const LONGER = 4;
const MOST_LEFT_OUT = 3;

/** A page with all its rows. */
interface KeptPage {
  rows: readonly Stamped[];
  ids: ReadonlySet<string>;
  between: Interval | undefined;
  answeredAt: Instant;
}

/** Remembers a few of the rows that were shown, to look for them on later answers. */
export class SeenRows {
  readonly #settleMs: number;
  readonly #edges = new Map<string, Remembered>();
  /** Questions longer than this leave rows out; and the rows that they left out. */
  wholeMs = Number.POSITIVE_INFINITY;
  readonly #leftOut = new Set<string>();
  #unordered: Instant[] = [];
  /** Pages to compare with others. */
  #pages: KeptPage[] = [];

  constructor(settleMs: number) {
    this.#settleMs = settleMs;
  }

  fork(): SeenRows {
    const copy = new SeenRows(this.#settleMs);
    copy.#pages = [...this.#pages];
    copy.#unordered = this.#unordered;
    copy.wholeMs = this.wholeMs;
    for (const [id, row] of this.#edges) copy.#edges.set(id, { ...row, missedBy: new Map(row.missedBy) });
    return copy;
  }

  get size(): number {
    return this.#edges.size + this.#unordered.length;
  }

  /** Whether a row lies strictly between two instants, shown in order or not. */
  has(after: Instant, before: Instant): boolean {
    const isBetween = (at: Instant): boolean => at > after && at < before;
    return this.#unordered.some(isBetween) || this.times(({ at }) => isBetween(at)).length > 0;
  }

  /** Rows out of order prove nothing, but they exist: there is no silence around them. */
  rememberUnordered(rows: readonly Stamped[]): void {
    const times = [...this.#unordered, ...rows.map(({ at }) => at)];
    this.#unordered = [...new Set(times)].slice(-MOST_REMEMBERED);
  }

  /** The distinct times of matching rows. */
  times(isWanted: (row: { at: Instant }) => boolean): Instant[] {
    return [...new Set([...this.#edges.values()].filter(isWanted).map(({ at }) => at))];
  }

  /** The times of rows between two instants, including those of the kept pages, oldest first. */
  timesShown(after: Instant, before: Instant): Instant[] {
    const isBetween = ({ at }: { at: Instant }): boolean => at > after && at < before;
    const kept = this.#pages.flatMap(({ rows }) => rows.filter(isBetween).map(({ at }) => at));
    return [...new Set([...kept, ...this.times(isBetween)])].sort((a, b) => a - b);
  }

  /**
   * RULE agreement. A seen row stays known until two questions with different bounds have shown the same times before and after it and not
   * the row, one of them by its first page: shards may each skip their share before a later page, and a row from elsewhere at the edge of
   * an answer leaves out all rows between it and the others. A longer question cannot deny what a short one has shown.
   */
  missingFrom(answer: Observation, sorted: readonly Stamped[], { after, before }: Interval): Stamped[] {
    const shown = new Set(answer.rows.map(({ id }) => id));
    const length = lengthOf(answer);
    const missing: Stamped[] = [];
    for (const [id, known] of this.#edges) {
      if (known.at <= after || known.at >= before || shown.has(id)) continue;
      const around = timesAround(known.at, sorted);
      const isConfirmed = [...known.missedBy].some(([by, beside]) => by !== boundsOf(answer) && beside === around);
      known.missedBy.set(boundsOf(answer), around);
      known.missedFirst ||= answer.query.page === 1;
      const isLonger = length > LONGER * Math.max(NARROW_MS, known.length);
      if (isConfirmed && known.missedFirst && !isLonger) this.#edges.delete(id);
      else missing.push({ id, at: known.at });
      if (known.missedBy.size > 1 && isLonger) this.#noteLeftOut(id, known.length);
    }
    return missing;
  }

  #noteLeftOut(id: string, length: number): void {
    this.#leftOut.add(id);
    if (this.#leftOut.size < MOST_LEFT_OUT) return;
    this.wholeMs = Math.min(this.wholeMs, Math.max(NARROW_MS, length));
  }

  /**
   * RULE whole. Where two answers overlap between their edges, they show the same rows. If not, the service samples long ranges, reads part
   * of the data, or drops rows of full pages: which one is unknown. Returns whether the answer contradicts another.
   */
  contradicts({ answeredAt }: Observation, rows: readonly Stamped[], between: Interval | undefined): boolean {
    // Copies id and time only: whole pages of large rows would stay in memory.
    const page = {
      rows: rows.map(({ id, at }) => ({ id, at })),
      ids: new Set(rows.map(({ id }) => id)),
      between,
      answeredAt,
    };
    if (this.#pages.some((kept) => this.#leavesOut(kept, page) || this.#leavesOut(page, kept))) return true;
    if (rows.length > 1) this.#pages.push(...this.#pages.splice(PAGES_KEPT).slice(1 - PAGES_KEPT), page);
    return false;
  }

  /** Whether an answer lacks rows that another one shows, and that existed when it came. */
  #leavesOut({ ids, between, answeredAt }: KeptPage, other: KeptPage): boolean {
    if (!between) return false;
    const settled = Math.min(answeredAt, other.answeredAt) - Math.max(this.#settleMs, LATE_MS);
    const both = other.rows.filter(({ at }) => at > between.after && at < between.before && at < settled);
    const left = both.filter(({ id }) => !ids.has(id)).length;
    return left > 1 && left * LEFT_OUT > both.length;
  }

  remember(answer: Observation, sorted: readonly Stamped[]): void {
    const length = lengthOf(answer);
    const edges =
      sorted.length <= 2 * EDGE_ROWS ? sorted : [...sorted.slice(0, EDGE_ROWS), ...sorted.slice(-EDGE_ROWS)];
    for (const { id, at } of edges) {
      const shortest = Math.min(length, this.#edges.get(id)?.length ?? Number.POSITIVE_INFINITY);
      this.#edges.delete(id);
      this.#edges.set(id, { at, length: shortest, missedBy: new Map(), missedFirst: false });
    }
    for (const id of this.#edges.keys()) {
      if (this.#edges.size <= MOST_REMEMBERED) break;
      this.#edges.delete(id);
    }
  }
}

interface Remembered {
  at: Instant;
  /** The length of the shortest question that showed it. */
  length: number;
  /** The questions that did not show it, with the times that they show around it, and whether one of them was for a first page. */
  missedBy: Map<string, string>;
  missedFirst: boolean;
}

const boundsOf = ({ query }: Observation): string =>
  `${query.order} ${query.start} ${query.end} ${query.limit} ${query.page}`;

/** The times in an answer right before and after an instant. */
function timesAround(at: Instant, sorted: readonly Stamped[]): string {
  const before = sorted.findLast((row) => row.at <= at);
  const behind = sorted.find((row) => row.at >= at);
  return `${before?.at} ${behind?.at}`;
}
