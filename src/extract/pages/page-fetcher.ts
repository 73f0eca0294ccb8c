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

export interface PageFetcherOptions extends SendOptions, ReceiveOptions {
  mostRows: number;
  earliest: Instant;
}

/** So short a range is answered by any service that is there. */
const THERE_MS = 60_000;
const FEW_TRIES = 2;
/** How often a question is asked that is answered with rows of another stream. */
const MOST_FOREIGN = 4;

/** No status, so that it took too long or was cut. */
const isUnanswered = (error: unknown): error is RetryLater => error instanceof RetryLater && error.answer?.status === 0;

export function createPageFetcher(options: PageFetcherOptions): PageFetcher {
  const { stream, flatten, evidence, profile, mostRows, clock } = options;
  const fetched: PageResult[] = [];
  const queryOf = createQuestions(options);
  const { send, sendNumbered } = createSend(options);
  if (profile.mostRangeMs !== undefined) evidence.limitRange(profile.mostRangeMs);

  let isAheadTried = false;
  /** The longest range that was answered, and whether one was that ends in the future. */
  const answered = { ms: 0, ahead: false, isRefused: false };

  async function ask(request: PageRequest, tries?: number): Promise<PageResult> {
    const query = queryOf(request);
    let answer: Page;
    try {
      answer = await send(query, tries);
    } catch (error) {
      if (isUnanswered(error)) await assertThere(FEW_TRIES);
      // Recovery: where it is the length or the end of the range that is refused, a shorter one is asked for, from now on.
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
    return (await isDarkAhead(query)) ? ask(request, tries) : page;
  }

  /** Where nobody answers the shortest question either, it is not this page: nothing else is asked. */
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
    const shown = takeIn({ ...query, end }, await send({ ...query, end })).count > 0;
    profile.endsNow = shown && takeIn(query, await send(query)).count === 0;
    return profile.endsNow;
  }

  function takeIn(query: PageQuery, answer: Page): PageResult {
    const page = receive(query, answer, options);
    fetched.push(page);
    return page;
  }

  /** Rows of another stream are the answer to another question, from a cache perhaps: this one is asked again, a little otherwise. */
  async function ownAnswer(request: PageRequest, tries?: number): Promise<PageResult> {
    let kindSeen: string | undefined;
    for (let time = 0; time < MOST_FOREIGN; time++) {
      const page = await ask({ ...request, start: request.start - time }, tries);
      if (page.admission.kind !== 'foreign') return page;
      kindSeen = page.foreignKind;
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
    assertThere,
  };
}
