import type { Instant } from '../model/instant.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../model/window.ts';
import { coverSilence, otherLimit, showsOlder } from './limits/silence.ts';
import { startNear, type Walk, type WalkEnd, walkPages } from './page-forward.ts';
import type { PageFetcher } from './pages/page-fetcher.ts';
import { firstStep, MOST_PAGES } from './pages/page-steps.ts';
import { unlessTooOld } from './pages/range-limits.ts';
import { type PageResult, sortedRows } from './pages/received.ts';
import { WIDENED_MS } from './proof/answer.ts';
import { APART_MS, QUIET_MS } from './proof/cover.ts';

/** Reads the page with the newest rows of all. It shows where the stream ends, if the newest known row is on it. */
export async function* newestPage(
  fetcher: PageFetcher,
  start: Instant,
  rows?: number,
): AsyncGenerator<PageResult, PageResult | undefined> {
  const { evidence } = fetcher;
  let first = yield* halvedUntilShown(fetcher, start, undefined, rows);
  // Rows are known there but none shows: the service rounded the start up, or the empty answer was an error.
  for (const back of [HOUR_MS, 26 * HOUR_MS]) {
    if (first?.count !== 0 || evidence.seenAfter(start).length === 0) break;
    first = yield* halvedUntilShown(fetcher, start - back);
  }
  if (first && !evidence.knowsEnd) yield* confirmNewest(fetcher, first);
  // On a new stream another question may show this as a side effect, before everything is read.
  if (Number.isFinite(evidence.shownThrough) && !evidence.isNew) yield* testEnds(fetcher);
  return first;
}

/** Services round starts up, and then nothing shows: each step starts further back. */
const STEPS_BACK_MS = [0, HOUR_MS, 26 * HOUR_MS];
/** The number of rows to compare: at least `least`, and as many as leave room on the page. */
const ROWS_COMPARED = { least: 20, most: 200 };
const ROOM = 3;
/** If a newer row than the candidate turns up, confirmation restarts from closer by, this many times in all. */
const MOST_CANDIDATES = 3;

/** It may be the newest only of a truncated range or a stale answer: asks otherwise, from just before it, and for all time since. */
async function* confirmNewest(fetcher: PageFetcher, page: PageResult): AsyncGenerator<PageResult, void> {
  const { evidence, profile, clock } = fetcher;
  const other = otherLimit(page.query.limit);
  let first: PageResult | undefined = page;
  for (let candidates = 0; candidates < MOST_CANDIDATES && first && !evidence.knowsEnd; candidates++) {
    const newest: Instant | undefined = sortedRows(first).at(-1)?.at;
    if (newest === undefined) return;
    yield* aroundNewerSeen(newest);
    // If rows are known, the page has shown them: then only the time since has to be covered.
    if (!evidence.isNew) yield* timeSince(newest);
    try {
      if (evidence.isNew && first === page) yield* otherOrder(newest);
      if (!evidence.knowsNewest) yield* fromRightThere(newest, first);
    } catch (error) {
      unlessTooOld(error);
    }
    if (evidence.isNew) yield* timeSince(newest);
    if (evidence.knowsEnd) return;
    const newer: Instant | undefined = evidence.seenAfter(newest).at(-1);
    if (newer === undefined) return;
    first = yield* halvedUntilShown(fetcher, Math.floor(newer) - 1 - profile.startMarginMs);
  }

  /** Before covering a silence, asks oldest first: the rows show how long a range the service answers, and where history begins. */
  async function* otherOrder(newest: Instant): AsyncGenerator<PageResult, void> {
    const { start, end, limit } = page.query;
    const isFull = page.count * 2 > limit && start <= newest - APART_MS && profile.mostRangeMs === undefined;
    if (!isFull || clock.now() - newest <= QUIET_MS) return;
    const oldest = await fetcher.attempt({ order: 'asc', start, end });
    if (oldest) yield oldest;
  }

  /** An earlier run saw a newer row: only a short question proves that it is gone. */
  async function* aroundNewerSeen(newest: Instant): AsyncGenerator<PageResult, void> {
    const seen = evidence.newerSeen(newest);
    if (seen === undefined) return;
    const around = { start: Math.floor(seen) - HOUR_MS - profile.startMarginMs, end: Math.ceil(seen) + HOUR_MS };
    const page = await fetcher.attempt({ order: 'asc', ...around });
    if (page) yield page;
  }

  async function* timeSince(newest: Instant): AsyncGenerator<PageResult, void> {
    const silence = evidence.silenceSince(newest, clock.now());
    if (!evidence.knowsEnd && silence.to - silence.from > QUIET_MS) yield* coverSilence(fetcher, silence, 'from');
  }

  async function* fromRightThere(newest: Instant, candidate: PageResult): AsyncGenerator<PageResult, void> {
    let isCrowded = false;
    // Includes a few rows before it for comparison, unless these fill the page.
    const right = Math.floor(newest) - 1;
    const compared = Math.max(ROWS_COMPARED.least, Math.min(ROWS_COMPARED.most, other / ROOM));
    const near = right - Math.min(20 * HOUR_MS, compared * profile.rowGapMs);
    for (const start of [near, right, right - HOUR_MS, right - 26 * HOUR_MS]) {
      const shown = await fetcher.attempt({ order: 'asc', start, step: firstStep(other) });
      if (!shown) break;
      yield shown;
      if (evidence.knowsNewest) return;
      const last = sortedRows(shown).at(-1)?.at;
      isCrowded = last !== undefined && last <= newest;
      // Services round starts up, and then nothing shows: start further back.
      const isWidened = (sortedRows(shown)[0]?.at ?? start) < start - MINUTE_MS;
      if (last !== undefined && (last > newest || start < near || start === right || isWidened)) break;
    }
    if (!isCrowded) return;
    // More rows share that instant than fit a page: a later page shows older rows after them, which proves the order of the answer.
    const isFull = sortedRows(candidate)[0]?.at === newest && candidate.count >= candidate.query.limit;
    if (isFull && !(yield* showsOlder(fetcher, candidate))) return;
    for (const back of STEPS_BACK_MS) {
      yield* halvedUntilShown(fetcher, Math.floor(newest) - 2 - back, undefined, other);
      if (evidence.knowsNewest) return;
    }
  }
}

/**
 * Tests whether the latest time shows. The service keeps ends if a question shows the row that it ends right after. If not, it may clamp
 * far-future ends to now before shifting them back or rounding them down, unless a question that ends now hides rows that those show.
 */
export async function* testEnds(
  fetcher: PageFetcher,
  newest: Instant = Number.POSITIVE_INFINITY,
): AsyncGenerator<PageResult, void> {
  const { evidence, profile, clock } = fetcher;
  const seen = evidence.seenBefore(newest);
  const rows = Number.isFinite(newest) ? [newest, ...seen] : seen;
  const [end] = rows.flatMap((at) => evidence.ends.behindRow(at) ?? []);
  const now = profile.endsNow || rows.length === 0 ? undefined : clock.now();
  for (const [until, back] of [[end, 2 * HOUR_MS] as const, [now, WIDENED_MS + DAY_MS] as const]) {
    if (until === undefined || evidence.ends.areKept) continue;
    const shown = await fetcher.attempt({ order: 'desc', start: until - back - profile.startMarginMs, end: until });
    if (shown) yield shown;
  }
}

/** Reads a page, and smaller ones if the full page fails because of its size or of one row that breaks it. */
async function* halvedUntilShown(
  fetcher: PageFetcher,
  start: Instant,
  end?: Instant,
  rows?: number,
): AsyncGenerator<PageResult, PageResult | undefined> {
  const full = rows ?? fetcher.profile.pageRows;
  for (let limit = full; limit >= 1; limit >>= 1) {
    const page = await fetcher.attempt({ order: 'desc', start, end, step: firstStep(limit) }, { once: limit < full });
    if (page) {
      yield page;
      return page;
    }
    // Recovery: halve the rows, down to one, unless the service is down. If one fails too, it is the newest row.
    if (limit === full || limit === 1) await fetcher.assertThere();
  }
  return undefined;
}

/**
 * Reads the chain in reverse: the newest rows up to what is known after the gap, page 1, until the gap is closed. It works if the service
 * keeps ends but not starts; if it keeps neither, numbered pages are walked.
 */
export async function* pageBackward(
  fetcher: PageFetcher,
  at: Instant,
  until: Instant,
): AsyncGenerator<PageResult, void> {
  const { evidence } = fetcher;
  const isClosed = (): boolean => evidence.through(at) !== undefined;
  const start = startNear(fetcher, at).start;
  for (let pages = 0; pages < MOST_PAGES && !isClosed(); pages++) {
    const before = evidence.nextFrom(at);
    const isAbove = before === undefined || before > until;
    const isWidened = fetcher.profile.granularity !== 'exact' && pages === 0;
    // On a service that widens bounds, an end one second after the gap becomes the end of its hour or day: the shortest way back.
    const end = isWidened ? at + 1000 : isAbove ? until + MINUTE_MS : endBehind(evidence.seenAfter(before), before);
    const page = yield* halvedUntilShown(fetcher, start, end);
    if (!page || page.count === 0) return;
    const after = evidence.nextFrom(at);
    if (isClosed() || (after !== undefined && (before === undefined || after < before))) continue;
    if (page.admission.kind !== 'counts' || after === undefined) return;
    const walk = { order: 'desc', start, end, step: firstStep(page.query.limit), last: page, stayUntil: at } as const;
    yield* walkPages(fetcher, walk, () => evidence.nextFrom(at) ?? at, isClosed);
    if (!isWidened) return;
  }
}

/** A little after a known row, so that it shows on the same page as the older rows. */
const endBehind = (seen: readonly Instant[], edge: Instant): Instant => Math.ceil(seen[1] ?? seen[0] ?? edge) + 1;

/** Walks from the newest page back, by overlapping pages, until one shows a row older than `floor`. */
export async function* walkBack(
  fetcher: PageFetcher,
  first: PageResult,
  floor: Instant,
  mostPages: number,
): AsyncGenerator<PageResult, WalkEnd | undefined> {
  let oldest = sortedRows(first)[0]?.at;
  let pages = 1;
  const walk: Walk = {
    order: 'desc',
    start: first.query.start,
    step: firstStep(first.query.limit),
    last: first,
    stayUntil: floor,
  };
  const isDone = (): boolean => oldest === undefined || oldest < floor || pages >= mostPages;
  if (isDone()) return undefined;
  const steps = walkPages(fetcher, walk, () => oldest ?? floor, isDone);
  for (;;) {
    // The edge must move with the page before the walk checks whether it is done.
    const next = await steps.next();
    if (next.done) return next.value.kind === 'done' ? undefined : next.value;
    pages += 1;
    const sorted = sortedRows(next.value);
    const [low, high] = [sorted[0]?.at, sorted.at(-1)?.at];
    if (low !== undefined && high !== undefined && oldest !== undefined && high > oldest)
      oldest = Math.min(oldest, low);
    yield next.value;
  }
}
