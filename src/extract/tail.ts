import { StopStream } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import { DAY_MS, HOUR_MS } from '../model/window.ts';
import { coverLimited, coverSilence } from './limits/silence.ts';
import { newestPage, testEnds, walkBack } from './page-backward.ts';
import type { PageFetcher } from './pages/page-fetcher.ts';
import type { PageRequest } from './pages/question.ts';
import { unlessTooOld } from './pages/range-limits.ts';
import { type PageResult, sortedRows } from './pages/received.ts';
import type { Profile } from './profile.ts';
import type { Interval } from './proof/answer.ts';
import { type Certified, prove } from './proof/certified.ts';
import { APART_MS } from './proof/cover.ts';
import type { Evidence } from './proof/evidence.ts';
import { CLOSED_MS } from './proof/intervals.ts';
import type { Prior } from './proof/prior.ts';
import { contentOf, createUndelivered, delivered, rowsOf, type Slice } from './slice.ts';

export interface TailRequest {
  /** Everything older is proven already; undefined if nothing is proven. */
  floor: Instant | undefined;
  /** Read back to here in any case: events may have arrived late before the floor. */
  lookback: Instant | undefined;
  /** The oldest instant to read. */
  since: Instant;
  known?: Omit<Prior, 'settleMs' | 'isProven'>;
}

export interface TailEnd {
  /** The certified window, from the floor or before it up to what has settled. */
  certified: Certified | undefined;
  /** One page showed all of it. */
  isOnePage: boolean;
  /** No question showed a row. */
  isEmpty: boolean;
  /** Sweeps of the same run continue from it: the rows that it rests on were delivered. */
  evidence: Evidence;
  /** The service's clock when it sent the newest page, which may miss anything later. */
  serverNow: Instant;
}

/** The number of rows from before the lookback that the page should have. */
const ROWS_BEFORE = 3;

/** Beyond this many pages, the chain reads a service with exact bounds faster, and it also keeps what it has proven. */
const TAIL_PAGES = 8;
const UNLIMITED = 2000;

/**
 * Reads new rows, newest first. The question begins at a known row, so that an idle poll is one request for a few rows; only that row, or
 * an older one, shows that the page overlaps the certified time.
 */
export async function* readTail(
  fetcher: PageFetcher,
  request: TailRequest & { settleMs: number },
): AsyncGenerator<Slice, TailEnd> {
  const { evidence, profile, clock } = fetcher;
  const { floor, settleMs, lookback = floor } = request;
  const isJoined = (): boolean =>
    floor === undefined ? evidence.knowsEnd : aroundFloor(evidence, floor) !== undefined;
  const undelivered = createUndelivered(contentOf);
  let pages = 0;
  let serverNow: Instant | undefined;
  let first: PageResult | undefined;
  let empty: PageResult | undefined;
  function* deliverAll(): Generator<Slice, void> {
    for (const page of fetcher.take()) {
      // Older rows only show that the page overlaps the certified time, or where history begins.
      const rows = undelivered(rowsOf(page, request.since, Number.POSITIVE_INFINITY));
      // A page that only confirms another has no new rows.
      if (rows.length > 0) pages += 1;
      // The clock of the newest page, not of the last one: rows that arrived during the walk are on none of its pages.
      serverNow ??= page.answeredAt;
      if (rows.length > 0 || page.rejected.length > 0) yield delivered(rows, page.rejected);
    }
  }

  async function* newest(): AsyncGenerator<Slice, void> {
    for (const start of startsOf(request, profile)) {
      let page: PageResult | undefined;
      for (const rows of limitsOf(profile)) {
        const asking = newestFrom(fetcher, start, rows);
        let next = await asking.next();
        while (!next.done) next = await asking.next();
        yield* deliverAll();
        page = next.value;
        // A page with room left shows no more if more is asked for.
        if (!page || page.count * 2 <= rows || (sortedRows(page)[0]?.at ?? start) < (lookback ?? start)) break;
      }
      if (!page) continue;
      if (page.count === 0) empty = page;
      else first = page;
      // If ranges are limited, an earlier start asks the same.
      if (profile.mostRangeMs !== undefined && page.query.start > start) break;
      if (page.count > 0 && (isJoined() || page.count >= page.query.limit / 2)) break;
    }
  }
  yield* newest();
  const isDoubtful = !isJoined() && (first !== undefined || floor === undefined);
  const whole: PageRequest = { order: 'desc', start: request.since - DAY_MS, end: clock.now() };
  if (isDoubtful && (await fetcher.countsFromZero(whole))) yield* newest();
  const isEmpty = first === undefined && empty !== undefined && (await showsNothing(fetcher, request));
  yield* deliverAll();
  const { newestSeen } = request.known ?? {};
  if (!isJoined() && profile.mostRangeMs !== undefined && newestSeen !== undefined) {
    // No question is long enough to show a known row.
    if (!evidence.ends.areKnownKept) for await (const _ of testEnds(fetcher, newestSeen)) yield* deliverAll();
    for await (const _ of coverLimited(fetcher, { from: newestSeen, to: clock.now() })) yield* deliverAll();
    evidence.admitSilence(newestSeen, evidence.seenAfter(newestSeen)[0]);
  }
  if (first && lookback !== undefined && first.count * 2 > first.query.limit) {
    const mostPages = profile.granularity === 'exact' ? TAIL_PAGES : UNLIMITED;
    for await (const _ of walkBack(fetcher, first, lookback, mostPages)) yield* deliverAll();
  }
  yield* deliverAll();

  if (profile.granularity === 'exact') profile.tailRows = undefined;
  else if (first && lookback !== undefined)
    profile.tailRows = sortedRows(first).filter(({ at }) => at >= lookback).length;
  const through = Math.min(evidence.settledThrough, evidence.shownThrough);
  const settled = Math.min((serverNow ?? clock.now()) - settleMs, through);
  // Not the last of them, so that several rows show and prove the order.
  const known = first ? [...new Set(sortedRows(first).flatMap(({ at }) => (at < settled ? [at] : [])))] : [];
  const [only] = known.length === 1 ? known : [];
  const older = only === undefined ? [] : evidence.seenBefore(only);
  profile.anchorAt = older[2] ?? older.at(-1) ?? known.at(-3) ?? known[0] ?? profile.anchorAt;
  return {
    certified: provenFrom(evidence, request, settled),
    isOnePage: pages === 1,
    isEmpty,
    evidence,
    // The slowest clock that answered: not all machines prove anything after it.
    serverNow: Math.min(serverNow ?? clock.now(), (evidence.isNew ? evidence.settledThrough : through) + settleMs),
  };
}

/** The starts to try: a known row before the floor, or before the lookback if that is earlier; then further back. */
function startsOf(
  { floor, lookback, since, known }: TailRequest,
  { anchorAt, rowGapMs, startMarginMs }: Profile,
): Instant[] {
  const margin = startMarginMs + Math.min(DAY_MS, ROWS_BEFORE * rowGapMs);
  // If no row was ever seen, there is none to begin at.
  if (floor === undefined || known?.newestSeen === undefined) return [since - APART_MS - DAY_MS];
  const rows = [anchorAt ?? known.newestSeen].filter((at) => at < floor);
  // A little before the lookback, so that a row from before it shows, too.
  const start = Math.floor(Math.min((lookback ?? floor) - margin, rows.length > 0 ? Math.max(...rows) : floor)) - 1;
  return [start, start - DAY_MS, since - 1, since - APART_MS - DAY_MS].filter(
    (at, i, all) => i === 0 || at < (all[i - 1] ?? at),
  );
}

/** Extra rows to ask for: new ones, and a row from before the lookback. */
const FEW_ROWS = 12;
const WIDER = 16;

/**
 * The page sizes to try, larger ones if a page does not reach back. A service that keeps starts bounds the page by the start; on one that
 * widens them only the limit does: twice the rows that the last poll needed.
 */
function limitsOf({ tailRows, ignoresOrder, pageRows }: Profile): number[] {
  const limits: number[] = [];
  const first = tailRows === undefined || ignoresOrder ? pageRows : 2 * tailRows + FEW_ROWS;
  for (let rows = first; rows < pageRows; rows *= WIDER) limits.push(rows);
  return [...limits, pageRows];
}

/** Whether no question shows a row: one from the beginning, and pieces that cover what an earlier poll found empty, or the latest hours. */
async function showsNothing(fetcher: PageFetcher, { since, known }: TailRequest): Promise<boolean> {
  const now = fetcher.clock.now();
  const found = known?.empty ?? [];
  // If ranges are limited, the long question below is truncated, so the pieces cover all of the time.
  const latest = { from: fetcher.profile.mostRangeMs === undefined ? now - LATEST_MS : since, to: now };
  const silences = found.length > 0 ? found.map(({ start, end }) => ({ from: start, to: end })) : [latest];
  const start = Math.min(since, ...silences.map(({ from }) => from)) - APART_MS - DAY_MS;
  // The service refuses a start that is older than the plan retains: what lies before it is unknown.
  const long = await fetcher.attempt({ order: 'asc', start }).catch(unlessTooOld);
  if (!long || long.count > 0) return false;
  for (const silence of silences) {
    for await (const { count } of coverSilence(fetcher, silence, 'to')) if (count > 0) return false;
  }
  fetcher.evidence.admitNothing();
  return true;
}

/** The time to check if no earlier empty window waits for confirmation. */
const LATEST_MS = 3 * HOUR_MS;

/** The service may refuse old starts that are beyond the plan's retention: then only the latest day is asked for. */
async function* newestFrom(
  fetcher: PageFetcher,
  start: Instant,
  rows: number,
): AsyncGenerator<PageResult, PageResult | undefined> {
  const recent = fetcher.clock.now() - DAY_MS;
  try {
    const page = yield* newestPage(fetcher, start, rows);
    if (page || start >= recent) return page;
  } catch (error) {
    // Recovery: if the latest day is readable, the service refuses this start and not the stream. A refused key is refused for any start.
    if (!(error instanceof StopStream) || error.answer?.status === 401 || start >= recent) throw error;
  }
  return yield* newestPage(fetcher, recent);
}

/** The proven interval around the floor. If no time has passed since the floor was proven, the interval ends there too. */
const aroundFloor = (evidence: Evidence, floor: Instant): Interval | undefined =>
  evidence.around(Math.min(floor, Math.min(evidence.settledThrough, evidence.shownThrough) - CLOSED_MS));

/** What is proven now around the floor, or from the beginning if nothing was proven before. */
function provenFrom(evidence: Evidence, { floor, since }: TailRequest, settled: Instant): Certified | undefined {
  const interval = floor === undefined ? evidence.around(since) : aroundFloor(evidence, floor);
  if (!interval) return undefined;
  const start = Math.max(since, Math.min(floor ?? since, Math.floor(interval.after) + 1));
  const end = Math.min(settled, interval.before);
  return start < end ? prove({ start, end }, evidence).proven : undefined;
}
