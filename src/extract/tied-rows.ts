import type { Instant } from '../model/instant.ts';
import type { PageFetcher } from './pages/page-fetcher.ts';
import { MOST_PAGES } from './pages/page-steps.ts';
import type { PageResult } from './pages/received.ts';
import { type Observation, sameRows } from './proof/answer.ts';
import { countOf, EMPTY_BEHIND } from './proof/counting.ts';

/** The rows of one instant, and where to look for them. */
export interface TiedRows {
  at: Instant;
  /** The sort orders that passes use in turn. */
  orders: ReadonlyArray<'asc' | 'desc'>;
  start: Instant;
  /** A position, counted from 0, at or before the first of them. */
  place: number;
  /** Returns whether the caller already knows what it needs. */
  isDone?: () => boolean;
}

/** Shuffled ties that fill one and a half pages need about ten passes to show all of them twice. */
const MOST_PASSES = 40;
/** Rows come and go during counting; more failed passes than this mean another fault. */
const MOST_UNCOUNTED = 3;
/** A page with less than one part in this many of the rows asked for was not truncated: its rows are hidden. */
export const MOST_CUT = 100;
/** More pages of shuffled ties without a new row than this repeat each other. */
const MOST_STALE = 4;

/**
 * Pages through an instant with more rows than a page: all of them lie at page edges, so that no single answer proves any. Passes with
 * different page edges count the positions and the rows on them; the evidence decides when these are all. Returns whether they are.
 */
export async function* countTiedRows(fetcher: PageFetcher, tied: TiedRows): AsyncGenerator<PageResult, boolean> {
  const { profile, evidence } = fetcher;
  let longest = Math.min(profile.pageRows, profile.walkRows);
  let isCut = false;
  let uncounted = 0;
  for (let pass = 0, shorter = 0; pass < MOST_PASSES && shorter <= longest >> 1; pass++, shorter++) {
    if (profile.ignoresPage) return false;
    const order = tied.orders[pass % tied.orders.length] ?? 'asc';
    const pages = yield* onePass(fetcher, tied, order, Math.max(1, longest - shorter));
    const count = countOf(pages, tied.at);
    if ((count && evidence.admitCount(tied.at, count)) || tied.isDone?.()) return true;
    // No row shows after it: from one side only, or if the stream's end is not known, another pass would not help.
    if (count?.isOpen && (!evidence.knowsEnd || tied.orders.length === 1) && pass >= tied.orders.length - 1)
      return false;
    const least = pages.find((page) => page.count < page.query.limit)?.count ?? longest;
    if (!isCut && (!count || count.isOpen) && least < longest && least >= longest / MOST_CUT) {
      // Pages hold fewer rows than asked for, and more rows follow: this is the service's page size.
      isCut = true;
      longest = least;
      shorter = -1;
      continue;
    }
    if (!count && ++uncounted > MOST_UNCOUNTED) return false;
  }
  return false;
}

/** Shuffled ties may show the same few rows on two pages by chance, but not this many. */
const BY_CHANCE = 8;

/** A full page repeats the one before it. */
function isSameAgain(pages: readonly Observation[]): boolean {
  const [one, other] = pages.slice(-2);
  if (!one || !other || one.count < one.query.limit || !sameRows(one, other)) return false;
  return one.query.page === 1 || one.count > BY_CHANCE;
}

/** Reads pages until a row on the far side shows, or until they show nothing new. */
async function* onePass(
  fetcher: PageFetcher,
  { at, start, place }: TiedRows,
  order: 'asc' | 'desc',
  limit: number,
): AsyncGenerator<PageResult, Observation[]> {
  const pages: Observation[] = [];
  const seen = new Set<string>();
  const isBehind = (row: { at: Instant }): boolean => (order === 'asc' ? row.at > at : row.at < at);
  let number = Math.floor(Math.max(0, place - 1) / limit) + 1;
  let stale = 0;
  let short = 0;
  for (let i = 0; i < MOST_PAGES; i++, number++) {
    const page = await fetcher.attempt({ order, start, step: { page: number, limit } });
    if (!page) break;
    yield page;
    pages.push({ ...page, rows: page.rows.map((row) => ({ id: row.id, at: row.at })) });
    if (page.rows.some(isBehind)) break;
    if (isSameAgain(pages)) {
      fetcher.profile.ignoresPage = true;
      break;
    }
    // After a page that is not full, only empty ones may follow.
    if (short > 0 && page.count > 0) break;
    if (page.count < limit && ++short > EMPTY_BEHIND) break;
    if (page.rows.every((row) => seen.has(row.id)) && ++stale > MOST_STALE) break;
    for (const row of page.rows) seen.add(row.id);
  }
  return pages;
}
