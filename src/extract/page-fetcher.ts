import { foreignKind } from '../api/check-filtered.ts';
import { ANSWER_TOO_LARGE, type Page } from '../api/client.ts';
import type { EventsApi } from '../api/events-api.ts';
import type { Lane } from '../api/limiter.ts';
import { BadRecord, RetryLater, StopStream } from '../model/errors.ts';
import type { Flatten, Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import { processMemory } from '../model/memory.ts';
import type { StreamName } from '../model/streams.ts';
import { findWhatIsRefused } from './limits/range-limits.ts';
import { firstStep, type Step } from './page-steps.ts';
import { noticeAnswer, type Profile } from './profile.ts';
import { type Observation, type PageQuery, type Stamped, WIDENED_MS } from './proof/answer.ts';
import type { Evidence } from './proof/evidence.ts';
import type { Admission } from './proof/prior.ts';
import type { ServiceClock } from './service-clock.ts';

/** A page to ask for. Without an end, everything there is, the future included. */
export interface PageRequest {
  order: 'asc' | 'desc';
  start: Instant;
  end?: Instant | undefined;
  /** The first page, as long as may be, unless said otherwise. */
  step?: Pick<Step, 'page' | 'limit'> | undefined;
}

export interface PageResult extends Observation {
  readonly rows: readonly Row[];
  readonly rejected: readonly Rejection[];
  /** What it was worth as evidence. */
  readonly admission: Admission;
}

/** The rows of a page that are in order, oldest first; none where it proves nothing. */
export const sortedRows = ({ admission }: PageResult): readonly Stamped[] =>
  admission.kind === 'counts' ? admission.sorted : [];

/** Something that could not be read, and why. */
export interface Rejection {
  record: unknown;
  reason: string;
}

export interface RequestContext {
  lane: Lane;
  signal: AbortSignal;
}

/** Fetches pages and takes each in as evidence. What to fetch next is up to the strategies; what it proves is not. */
export interface PageFetcher {
  fetch(request: PageRequest): Promise<PageResult>;
  /** The same where the failure of this very page is an answer too: undefined then. With `once` it is not tried again. */
  attempt(request: PageRequest, options?: { once?: boolean }): Promise<PageResult | undefined>;
  /** Whether the first page has the number 0, so that what was asked for as the first was the second. Asked once; from then on pages have their own numbers. */
  countsFromZero(request: PageRequest): Promise<boolean>;
  /** Throws where the service is not there at all, or refuses the stream whatever is asked. */
  assertThere(): Promise<void>;
  /** Every page that was fetched since the last call: what became evidence must be delivered, whoever asked for it. */
  take(): PageResult[];
  readonly evidence: Evidence;
  readonly profile: Profile;
  /** What a page may hold; `profile.pageRows` is what the service could put on one lately. */
  readonly mostRows: number;
  readonly clock: ServiceClock;
  /** How many pages' worth of rows a question of a chain asks for. */
  readonly shortRange: { pages: number };
}

export interface PageFetcherOptions extends RequestContext {
  api: EventsApi;
  stream: StreamName;
  filters: Readonly<Record<string, string>>;
  flatten: Flatten;
  evidence: Evidence;
  profile: Profile;
  mostRows: number;
  clock: ServiceClock;
  earliest: Instant;
  /** Told of each answer: how long it took, how large it was, and its rows. */
  onAnswer(answer: Pick<Page, 'tookMs' | 'bytes'>, rows: readonly Row[]): void;
}

/** A usual page of 1000 fits where memory is not scarce. */
const MOST_BYTES = processMemory.bytes / 48;

/** Ends get rounded down, and read in other zones: asking so far ahead, the present is in the answer. */
const AHEAD_MS = WIDENED_MS;
/** So short a range is answered by any service that is there. */
const THERE_MS = 60_000;
/** How often a question is asked that is answered with rows of another stream. */
const MOST_FOREIGN = 4;

export function createPageFetcher(options: PageFetcherOptions): PageFetcher {
  const { api, stream, filters, flatten, evidence, profile, mostRows, clock, earliest, lane, signal, onAnswer } =
    options;
  const fetched: PageResult[] = [];
  const mostRange = (): number => Math.min(evidence.wholeMs(), profile.mostRangeMs ?? Number.POSITIVE_INFINITY);
  /** Where ranges are short, most of one is to lie in the past. */
  const endOfAll = (): Instant => clock.now() + (profile.endsNow ? 0 : Math.min(AHEAD_MS, mostRange() / 4));
  let ahead = endOfAll();
  if (profile.mostRangeMs !== undefined) evidence.limitRange(profile.mostRangeMs);

  /** The question as it can be asked: no longer than the service answers, on the side that is wanted. */
  function queryOf({ order, start, end, step = firstStep(profile.pageRows) }: PageRequest): PageQuery {
    // Fixed, so that pages of one question are pages of one question.
    const isMoved = profile.endsNow || mostRange() < 4 * AHEAD_MS || clock.now() > ahead;
    if (step.page === 1 && isMoved) ahead = endOfAll();
    const { page, limit } = step;
    const last = profile.endsNow ? Math.min(end ?? ahead, ahead) : (end ?? ahead);
    const from = Math.max(start, earliest);
    const query = { order, start: from, end: Math.max(from, last), page, limit };
    const most = mostRange();
    if (query.end - query.start <= most) return query;
    return order === 'asc' ? { ...query, end: query.start + most } : { ...query, start: query.end - most };
  }

  let isAheadTried = false;
  /** The longest range that was answered, and whether one was that ends in the future. */
  const answered = { ms: 0, ahead: false, isRefused: false };

  async function sendNumbered({ order, ...query }: PageQuery, tries?: number): Promise<Page> {
    try {
      return await api.page({ stream, filters, sortOrder: order, ...query }, { lane, signal, ...(tries && { tries }) });
    } catch (error) {
      // A refused question tells the service's clock, too: it may be our present that lies in its future.
      const { status, serverNow } = (error instanceof StopStream && error.answer) || {};
      if (serverNow !== undefined && (status === 400 || status === 422)) clock.set(serverNow);
      throw error;
    }
  }

  async function sendOnce(query: PageQuery, tries?: number): Promise<Page> {
    try {
      return await sendNumbered({ ...query, page: query.page - 1 + profile.firstPage }, tries);
    } catch (error) {
      // Recovery: pages are counted from 1 again.
      if (profile.firstPage === 1 || query.page > 1 || !(error instanceof StopStream)) throw error;
      profile.firstPage = 1;
      return sendNumbered(query, tries);
    }
  }

  async function ask(request: PageRequest, tries?: number): Promise<PageResult> {
    const query = queryOf(request);
    let answer: Page;
    try {
      answer = await sendOnce(query, tries);
    } catch (error) {
      // Recovery: where it is the length or the end of the range that is refused, a shorter one is asked for, from now on.
      const limits = { profile, answered, now: clock.now, send: sendOnce };
      if (!(await findWhatIsRefused(query, error, limits))) throw error;
      if (profile.mostRangeMs !== undefined) evidence.limitRange(profile.mostRangeMs);
      return ask(request, tries);
    }
    const isAhead = query.end > clock.now();
    answered.ms = Math.max(answered.ms, query.end - query.start);
    answered.ahead ||= isAhead;
    const page = takeIn(query, answer);
    if (isAhead && page.count > 0) [profile.endsNow, isAheadTried] = [false, true];
    if (!isAhead || page.count > 0 || query.page > 1 || profile.endsNow) return page;
    return (await isDarkAhead(query)) ? ask(request, tries) : page;
  }

  let isNumberTried = false;

  async function countsFromZero(request: PageRequest): Promise<boolean> {
    if (isNumberTried || profile.firstPage === 0) return false;
    isNumberTried = true;
    const query = queryOf(request);
    try {
      const zero = await sendNumbered({ ...query, page: 0 }, 1);
      if (zero.records.length === 0) return false;
      const one = await sendNumbered({ ...query, page: 1 });
      const [shown, other] = [zero, one].map(({ records }) => flattenAll(records, flatten).rows.map(({ id }) => id));
      if (!shown?.length || shown.some((id) => other?.includes(id))) return false;
      profile.firstPage = 0;
      takeIn(query, zero);
      return true;
    } catch (error) {
      // Recovery: a page 0 that is refused is what the contract says.
      if (error instanceof StopStream || mayBeThisPage(error)) return false;
      throw error;
    }
  }

  /**
   * A service whose clock is behind may show nothing at all for an end in what is its future. Asked once; and once a run, where rows are known
   * to be and none was shown so far ahead. Only if nothing shows a second time: `[]` comes by chance.
   */
  async function isDarkAhead(query: PageQuery): Promise<boolean> {
    const end = clock.now();
    const mayBe = profile.endsNow === undefined || (!isAheadTried && evidence.seenAfter(query.start).length > 0);
    if (!mayBe || query.start >= end) return false;
    isAheadTried = true;
    const shown = takeIn({ ...query, end }, await sendOnce({ ...query, end })).count > 0;
    profile.endsNow = shown && takeIn(query, await sendOnce(query)).count === 0;
    return profile.endsNow;
  }

  function takeIn(query: PageQuery, { records, serverNow, ...received }: Page): PageResult {
    if (serverNow !== undefined) clock.set(serverNow);
    const own = records.filter((record) => foreignKind(stream, record) === undefined);
    const { rows: shown, rejected } = flattenAll(own, flatten);
    const rows = withoutRepeats(shown);
    const count = own.length - (shown.length - rows.length);
    onAnswer(received, rows);
    // A chain holds a few pages, and its sinks hold more: of large rows it asks for fewer.
    if (received.bytes > MOST_BYTES)
      profile.pageRows = Math.min(profile.pageRows, Math.ceil((records.length * MOST_BYTES) / received.bytes));
    const answer = { query, rows, count, answeredAt: clock.now(), foreign: records.length - own.length };
    const admission = evidence.admit(answer);
    noticeAnswer(profile, answer, admission);
    const page = { ...answer, rejected, admission };
    fetched.push(page);
    if (admission.kind === 'foreign') kindSeen = records.map((record) => foreignKind(stream, record)).find(Boolean);
    return page;
  }

  let kindSeen: string | undefined;

  /** Rows of another stream are the answer to another question, from a cache perhaps: this one is asked again, a little otherwise. */
  async function ownAnswer(request: PageRequest, tries?: number): Promise<PageResult> {
    for (let time = 0; time < MOST_FOREIGN; time++) {
      const page = await ask({ ...request, start: request.start - time }, tries);
      if (page.admission.kind !== 'foreign') return page;
    }
    throw new RetryLater(`the service answers event=${stream} with events of another kind (${kindSeen})`, {
      kept: 'none of them was stored',
      next: 'run it again later; if it persists, tell whoever runs the service, or a cache in front of it',
    });
  }

  /** An answer that lacks what was seen before is asked for once more, otherwise: what two questions do not show is gone. */
  async function agreed(request: PageRequest, tries?: number): Promise<PageResult> {
    const page = await ownAnswer(request, tries);
    if (page.admission.kind !== 'contradicts') return page;
    const again = await ownAnswer({ ...request, start: request.start - 1 }, tries);
    return again.admission.kind === 'counts' ? again : page;
  }

  return {
    evidence,
    profile,
    mostRows,
    clock,
    shortRange: { pages: 2 },
    take: () => fetched.splice(0),
    countsFromZero,
    fetch: (request) => agreed(request),
    async attempt(request, { once = false } = {}) {
      try {
        return await agreed(request, once ? 1 : undefined);
      } catch (error) {
        // Recovery: that this page fails is what the caller wants to know.
        if (mayBeThisPage(error)) return undefined;
        if (!once || !(error instanceof RetryLater)) throw error;
        // A fault of the network says nothing of the page: it is tried again like any other.
        return this.attempt(request);
      }
    },
    async assertThere() {
      const end = clock.now();
      await sendOnce({ order: 'asc', start: end - THERE_MS, end, page: 1, limit: 1 });
    },
  };
}

/** Failures that another page may get round. 401, 403 and the like would fail for any. */
export function mayBeThisPage(error: unknown): error is RetryLater | StopStream {
  // Without an answer nothing is known of the page: nobody listens there, or the network is down.
  if (error instanceof RetryLater) return error.answer !== undefined && error.answer.status !== 429;
  if (!(error instanceof StopStream) || !error.answer) return false;
  return [413, 422].includes(error.answer.status) || error.answer.code === ANSWER_TOO_LARGE;
}

/** A row that stands on a page twice is one row, in its last version. */
function withoutRepeats(rows: readonly Row[]): readonly Row[] {
  const once = new Map(rows.map((row) => [`${row.at} ${row.id}`, row]));
  return once.size === rows.length ? rows : [...once.values()];
}

export function flattenAll(records: readonly unknown[], flatten: Flatten): { rows: Row[]; rejected: Rejection[] } {
  const rows: Row[] = [];
  const rejected: Rejection[] = [];
  for (const record of records) {
    try {
      rows.push(flatten(record));
    } catch (error) {
      if (!(error instanceof BadRecord)) throw error;
      // Recovery: the record goes to quarantine with its reason; the page goes on.
      rejected.push({ record: error.remains, reason: error.message });
    }
  }
  return { rows, rejected };
}
