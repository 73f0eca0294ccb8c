import type { Instant } from '../model/instant.ts';
import type { PageFetcher } from './pages/page-fetcher.ts';
import { MOST_PAGES } from './pages/page-steps.ts';
import type { PageResult } from './pages/received.ts';
import { type Observation, sameRows } from './proof/answer.ts';
import { countOf, EMPTY_BEHIND } from './proof/counting.ts';

/** Where the rows of one instant are looked for. */
export interface TiedRows {
  at: Instant;
  /** One after the other, pass by pass. */
  orders: ReadonlyArray<'asc' | 'desc'>;
  start: Instant;
  /** A place, counted from 0, that is not behind the first of them. */
  place: number;
  /** Whether what was wanted of it is known by now. */
  isDone?: () => boolean;
}

/** Shuffled ties of one and a half pages need about ten passes to show them all twice. */
const MOST_PASSES = 40;
/** Rows come and go while they are counted; more often than this, something else is wrong. */
const MOST_UNCOUNTED = 3;
/** A page that holds less than this part of what was asked for was not cut, its rows are hidden. */
export const MOST_CUT = 100;
/** Pages of a shuffled instant that show nothing new; more of them repeat each other. */
const MOST_STALE = 4;

/**
 * Pages through an instant that has more rows than a page: all of them are edges, so that no answer proves one. Passes with other page
 * edges count the places and the rows that stand there; the evidence says when these are all. Returns whether they are.
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
    // Nothing shows behind it: from one side only, or where the end of everything is not known, no pass more would tell.
    if (count?.isOpen && (!evidence.knowsEnd || tied.orders.length === 1) && pass >= tied.orders.length - 1)
      return false;
    const least = pages.find((page) => page.count < page.query.limit)?.count ?? longest;
    if (!isCut && (!count || count.isOpen) && least < longest && least >= longest / MOST_CUT) {
      // Pages hold fewer rows than were asked for, and more lie behind: then this is what a page holds.
      isCut = true;
      longest = least;
      shorter = -1;
      continue;
    }
    if (!count && ++uncounted > MOST_UNCOUNTED) return false;
  }
  return false;
}

/** Shuffled ties may show the same few rows on two pages by chance; not this many. */
const BY_CHANCE = 8;

/** A full page repeats the one before it. */
function isSameAgain(pages: readonly Observation[]): boolean {
  const [one, other] = pages.slice(-2);
  if (!one || !other || one.count < one.query.limit || !sameRows(one, other)) return false;
  return one.query.page === 1 || one.count > BY_CHANCE;
}

/** Until a row on the far side shows, or nothing new does. */
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
    // Behind a page that is not full only empty ones may follow.
    if (short > 0 && page.count > 0) break;
    if (page.count < limit && ++short > EMPTY_BEHIND) break;
    if (page.rows.every((row) => seen.has(row.id)) && ++stale > MOST_STALE) break;
    for (const row of page.rows) seen.add(row.id);
  }
  return pages;
}
