import { checkFiltered, doubtOf } from '../api/check-filtered.ts';
import type { EventsApi } from '../api/events-api.ts';
import { MAX_LIMIT } from '../api/params.ts';
import type { Flatten, Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import { STREAMS, type StreamName } from '../model/streams.ts';
import { DAY_MS, type Window } from '../model/window.ts';
import { createPageFetcher, type PageFetcher, type PageFetcherOptions } from './pages/page-fetcher.ts';
import type { RequestContext } from './pages/send.ts';
import type { Profile } from './profile.ts';
import { Evidence } from './proof/evidence.ts';
import type { Prior } from './proof/prior.ts';
import { createServiceClock } from './service-clock.ts';
import type { Slice } from './slice.ts';
import { createFairShare, sweep, TOO_YOUNG } from './sweep.ts';
import { readTail, type TailEnd, type TailRequest } from './tail.ts';

/** Reads one stream of one source. `proof/` decides what is proven: see docs/internals/extraction.md. */
export interface Reader {
  /** Reads from the newest event back to `floor`, newest first: fresh rows are delivered before anything is proven. */
  tail(request: TailRequest & RequestContext): AsyncGenerator<Slice, TailEnd>;
  /** Reads a window from its start to its end. Slices cover it in order, without gaps; each can be committed on its own. */
  sweep(request: SweepRequest): AsyncGenerator<Slice, void>;
  profile(): Profile;
  /** The service's clock as of its last answer; our clock before the first answer. */
  serverNow(): Instant;
  /** The shortest response time among the last few answers; the others waited in this process. 0 before the first. */
  answerMs(): number;
  /** The number of answers so far. */
  answers(): number;
  /** The size of the last answer, decompressed. */
  answerBytes(): number;
  /** Why nothing is certified: the service may ignore the filters, or contradicts itself. Undefined if there is no such sign. */
  doubt(): string | undefined;
}

export interface SweepRequest extends RequestContext {
  window: Window;
  /** The result of this run's tail, whose rows were delivered. */
  after?: TailEnd | undefined;
}

export interface ReaderOptions {
  api: EventsApi;
  stream: StreamName;
  filters: Readonly<Record<string, string>>;
  /** Earlier runs with these filters saw rows: that there are none now is no sign against the filters. */
  hasShown?: boolean | undefined;
  flatten: Flatten;
  profile: Profile;
  /** Settle time: nothing younger is ever certified. */
  settleMs: number;
  /** The beginning of the service's history, if known: the service refuses any earlier start. */
  earliest?: Instant | undefined;
  /** The largest page to ask for. */
  mostRows?: number;
  /** Our clock, used until the service's clock is known. */
  now?: () => Instant;
}

export type { PageRequest } from './pages/question.ts';
export type { Rejection } from './pages/received.ts';
export type { RequestContext } from './pages/send.ts';
export type { Profile } from './profile.ts';
export { createUndelivered, type Slice } from './slice.ts';
export { TOO_YOUNG } from './sweep.ts';
export type { TailEnd } from './tail.ts';

/** The number of last answers to look at: enough that one of them did not wait, few enough to follow the service. */
const OF_LATE = 4;

export function createReader(settings: ReaderOptions): Reader {
  const { now, mostRows = MAX_LIMIT, earliest = Number.NEGATIVE_INFINITY, settleMs, ...options } = settings;
  const profile = { ...options.profile };
  // The cause of smaller pages may be gone: every run tries twice as many rows as the last run ended with.
  profile.pageRows = Math.min(mostRows, profile.pageRows * 2);
  profile.walkRows = Math.min(mostRows, profile.walkRows * 2);
  // Faults that block a whole run are tested again in the next run.
  profile.ignoresPage = false;
  profile.contradictsItself = false;
  profile.showsFrom = undefined;
  const clock = createServiceClock(now && { steady: now, ours: now });
  if (clock.now() - (profile.limitedAt ?? Number.NEGATIVE_INFINITY) > DAY_MS) profile.mostRangeMs = undefined;
  let [answerBytes, requests, empty] = [0, 0, 0];
  const tookOfLate: number[] = [];
  const guard = createGuard(settings, profile);
  const onAnswer: PageFetcherOptions['onAnswer'] = ({ tookMs, bytes }, rows) => {
    answerBytes = bytes;
    tookOfLate[requests++ % OF_LATE] = tookMs;
    empty = rows.length === 0 ? empty + 1 : 0;
    guard.see(rows);
  };
  const fair = createFairShare(profile, () => ({ requests, empty }));
  const fetcherFor = (evidence: Evidence, { lane, signal }: RequestContext): PageFetcher =>
    createPageFetcher({ ...options, evidence, profile, mostRows, clock, earliest, lane, signal, onAnswer });
  const { keepsEnds, reachesAhead } = profile;
  const fresh = (known: Omit<Prior, 'settleMs'> = {}): Evidence =>
    new Evidence({ keepsEnds, reachesAhead, ...known, settleMs, founded: settings.earliest });

  return {
    profile: () => ({ ...profile }),
    serverNow: clock.now,
    answerMs: () => (requests === 0 ? 0 : Math.min(...tookOfLate)),
    answers: () => requests,
    answerBytes: () => answerBytes,
    doubt: guard.doubt,
    tail: (request) => {
      const { quietThrough } = profile;
      const evidence = fresh({ quietThrough, ...request.known, isProven: request.floor !== undefined });
      return guard.tail(readTail(fetcherFor(evidence, request), { ...request, settleMs }));
    },
    sweep: ({ window, after, ...context }) =>
      guard.sweep(sweep(fetcherFor(after?.evidence.fork() ?? fresh(), context), window, fair)),
  };
}

const CONTRADICTED =
  'answers of this service contradict each other: rows that one shows are missing from another for the same time';

/**
 * A proof covers what was asked for; only the rows show whether the service answered that question. Nothing is certified after the first
 * row that a filter should have excluded, while no row at all has come for a filter, or when answers contradict each other.
 */
interface Guard {
  /** Checks every row that the service shows, at any time. */
  see(rows: readonly Row[]): void;
  doubt(): string | undefined;
  sweep(slices: AsyncGenerator<Slice, void>): AsyncGenerator<Slice, void>;
  tail(slices: AsyncGenerator<Slice, TailEnd>): AsyncGenerator<Slice, TailEnd>;
}

function createGuard({ stream, filters, hasShown = false }: ReaderOptions, profile: Profile): Guard {
  const isFiltered = Object.keys(filters).length > 0;
  let check = checkFiltered(STREAMS[stream], filters, []);
  const doubt = (): string | undefined => {
    if (profile.contradictsItself) return CONTRADICTED;
    return hasShown && check.rows === 0 ? undefined : doubtOf(check);
  };
  return {
    see(rows) {
      if (isFiltered) check = checkFiltered(STREAMS[stream], filters, rows, check);
    },
    doubt,
    async *sweep(slices) {
      for await (const slice of slices) {
        const note = doubt();
        const isJudged = slice.window && slice.note !== TOO_YOUNG;
        yield isJudged && note ? { ...slice, certified: undefined, whole: false, note } : slice;
      }
    },
    async *tail(slices) {
      const end = yield* slices;
      return doubt() ? { ...end, certified: undefined } : end;
    },
  };
}
