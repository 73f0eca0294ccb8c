import type { Page } from '../../api/client.ts';
import { RetryLater, StopStream } from '../../model/errors.ts';
import type { Instant } from '../../model/instant.ts';
import type { Profile } from '../profile.ts';
import type { PageQuery } from '../proof/answer.ts';
import type { Evidence } from '../proof/evidence.ts';
import type { ServiceClock } from '../service-clock.ts';
import { createQuestions, type PageRequest } from './question.ts';
import { findWhatIsRefused } from './range-limits.ts';
import { flattenAll, type PageResult, type ReceiveOptions, receive } from './received.ts';
import { createSend, mayBeThisPage, type SendOptions } from './send.ts';

/** Fetches pages and admits each as evidence. Strategies decide what to fetch next; the evidence decides what it proves. */
export interface PageFetcher {
  fetch(request: PageRequest): Promise<PageResult>;
  /** Like `fetch`, but returns undefined if this very page fails. With `once` it is not retried. */
  attempt(request: PageRequest, options?: { once?: boolean }): Promise<PageResult | undefined>;
  /** Whether pages count from 0, so that page 1 was the second page. Tested once; from then on page numbers are translated. */
  countsFromZero(request: PageRequest): Promise<boolean>;
  /** Throws if the service is down, or refuses every question about the stream. */
  assertThere(): Promise<void>;
  /** The pages fetched since the last call, by any strategy: all that became evidence must be delivered. */
  take(): PageResult[];
  readonly evidence: Evidence;
  readonly profile: Profile;
  /** The largest page to ask for; `profile.pageRows` is what the service managed lately. */
  readonly mostRows: number;
  readonly clock: ServiceClock;
  /** How many pages' worth of rows a question of a chain asks for. */
  readonly shortRange: { pages: number };
}

export interface PageFetcherOptions extends SendOptions, ReceiveOptions {
  mostRows: number;
  earliest: Instant;
}

/** Any service that is up answers a range this short. */
const THERE_MS = 60_000;
const FEW_TRIES = 2;
/** How often to ask a question that is answered with rows of another stream. */
const MOST_FOREIGN = 4;

/** No status: the answer took too long or was cut. */
const isUnanswered = (error: unknown): error is RetryLater => error instanceof RetryLater && error.answer?.status === 0;

export function createPageFetcher(options: PageFetcherOptions): PageFetcher {
  const { stream, flatten, evidence, profile, mostRows, clock } = options;
  const fetched: PageResult[] = [];
  const queryOf = createQuestions(options);
  const { send, sendNumbered } = createSend(options);
  if (profile.mostRangeMs !== undefined) evidence.limitRange(profile.mostRangeMs);

  let isAheadTried = false;
  /** The longest range that was answered, and whether one that ends in the future was. */
  const answered = { ms: 0, ahead: false, isRefused: false };

  async function ask(request: PageRequest, tries?: number): Promise<PageResult> {
    const query = queryOf(request);
    let answer: Page;
    try {
      answer = await send(query, tries);
    } catch (error) {
      if (isUnanswered(error)) await assertThere(FEW_TRIES);
      // Recovery: if the service refuses the length or the end of the range, use a shorter one from now on.
      const limits = { profile, answered, now: clock.now, send };
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
    return (await hidesAhead(query)) ? ask(request, tries) : page;
  }

  /** If the shortest question gets no answer either, this page is not the cause: ask nothing else. */
  async function assertThere(tries?: number): Promise<void> {
    const end = clock.now();
    try {
      await send({ order: 'asc', start: end - THERE_MS, end, page: 1, limit: 1 }, tries);
    } catch (error) {
      throw isUnanswered(error) ? new RetryLater(error.message, { ...error, answer: undefined, cause: error }) : error;
    }
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
      // Recovery: the contract lets a service refuse page 0.
      if (error instanceof StopStream || mayBeThisPage(error)) return false;
      throw error;
    }
  }

  /**
   * A service whose clock is behind may show nothing at all for an end in its future. Tested once, and again once a run if rows are known
   * but none has shown so far ahead. Counts only if nothing shows a second time: `[]` comes by mistake.
   */
  async function hidesAhead(query: PageQuery): Promise<boolean> {
    const end = clock.now();
    const mayBe = profile.endsNow === undefined || (!isAheadTried && evidence.seenAfter(query.start).length > 0);
    if (!mayBe || query.start >= end) return false;
    isAheadTried = true;
    const shown = takeIn({ ...query, end }, await send({ ...query, end })).count > 0;
    profile.endsNow = shown && takeIn(query, await send(query)).count === 0;
    return profile.endsNow;
  }

  function takeIn(query: PageQuery, answer: Page): PageResult {
    const page = receive(query, answer, options);
    fetched.push(page);
    return page;
  }

  /** Rows of another stream answer another question, perhaps from a cache: asks again with a slightly different start. */
  async function ownAnswer(request: PageRequest, tries?: number): Promise<PageResult> {
    let kindSeen: string | undefined;
    for (let time = 0; time < MOST_FOREIGN; time++) {
      const page = await ask({ ...request, start: request.start - time }, tries);
      if (page.admission.kind !== 'foreign') return page;
      kindSeen = page.foreignKind;
    }
    throw new RetryLater(`the service answers event=${stream} with events of another kind (${kindSeen})`, {
      kept: 'none of them was stored',
      next: 'run it again later; if the problem persists, ask the operator of the service, or of a cache in front of it',
    });
  }

  /** If an answer lacks rows that were seen before, asks once more with another start: rows that two questions do not show are gone. */
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
        // Recovery: the failure of this page is the result that the caller asked for.
        if (mayBeThisPage(error)) return undefined;
        if (!once || !(error instanceof RetryLater)) throw error;
        // A network fault does not mean that the page fails: it is retried like any other.
        return this.attempt(request);
      }
    },
    assertThere,
  };
}
