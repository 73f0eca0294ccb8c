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

/** Reads one stream of one source. What it has proven is the word of `proof/`; the argument is in docs/internals/extraction.md. */
export interface Reader {
  /** From the newest event back to `floor`, newest first: what is fresh is delivered before anything is proven. */
  tail(request: TailRequest & RequestContext): AsyncGenerator<Slice, TailEnd>;
  /** A window from its start to its end. Slices cover it in order, without gaps; each can be committed on its own. */
  sweep(request: SweepRequest): AsyncGenerator<Slice, void>;
  profile(): Profile;
  /** The service's clock as of its last answer; ours before that. */
  serverNow(): Instant;
  /** How long the service took for the quickest of its last answers: others waited for this process. 0 before the first. */
  answerMs(): number;
  /** How many it gave. */
  answers(): number;
  /** How large the last one was, unpacked. */
  answerBytes(): number;
  /** Why nothing that it reads is called complete: the service may not have kept the filters, or contradicts itself. Undefined where nothing speaks for that. */
  doubt(): string | undefined;
}

export interface SweepRequest extends RequestContext {
  window: Window;
  /** What the tail of this run has shown, whose rows were delivered. */
  after?: TailEnd | undefined;
}

export interface ReaderOptions {
  api: EventsApi;
  stream: StreamName;
  filters: Readonly<Record<string, string>>;
  /** Earlier runs with these filters saw rows. */
  hasShown?: boolean | undefined;
  flatten: Flatten;
  profile: Profile;
  /** Nothing younger is ever called complete. */
  settleMs: number;
  /** The beginning of the service's history, where that was found: it refuses to be asked for anything older. */
  earliest?: Instant | undefined;
  /** The most rows that may be asked for on a page. */
  mostRows?: number;
  /** Our clock, for the time before the service has told its own. */
  now?: () => Instant;
}

export type { PageRequest } from './pages/question.ts';
export type { Rejection } from './pages/received.ts';
export type { RequestContext } from './pages/send.ts';
export type { Profile } from './profile.ts';
export { createUndelivered, type Slice } from './slice.ts';
export { TOO_YOUNG } from './sweep.ts';
export type { TailEnd } from './tail.ts';

/** Answers of late: enough that one of them did not wait, few enough to follow the service. */
const OF_LATE = 4;

export function createReader(settings: ReaderOptions): Reader {
  const { now, mostRows = MAX_LIMIT, earliest = Number.NEGATIVE_INFINITY, settleMs, ...options } = settings;
  const profile = { ...options.profile };
  // Whatever made pages smaller may be over: every run tries twice as many rows as the last one ended with.
  profile.pageRows = Math.min(mostRows, profile.pageRows * 2);
  profile.walkRows = Math.min(mostRows, profile.walkRows * 2);
  // What stands in the way of a whole run is looked for again in the next.
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
 * What is proven is complete of what was asked for; whether the service asked itself the same question, only its rows show. From the
 * first row on that a filter should have kept out, as long as no row ever came for a filter, and where answers contradict each other, nothing is
 * called complete.
 */
interface Guard {
  /** Every row that the service shows, wherever it lies. */
  see(rows: readonly Row[]): void;
  doubt(): string | undefined;
  sweep(slices: AsyncGenerator<Slice, void>): AsyncGenerator<Slice, void>;
  tail(slices: AsyncGenerator<Slice, TailEnd>): AsyncGenerator<Slice, TailEnd>;
}

interface GuardOptions {
  stream: StreamName;
  filters: Readonly<Record<string, string>>;
  /** Earlier runs with these filters saw rows: that there are none now says nothing against them. */
  hasShown?: boolean | undefined;
}

function createGuard({ stream, filters, hasShown = false }: GuardOptions, profile: Profile): Guard {
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
