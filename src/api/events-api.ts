import pRetry from 'p-retry';
import { Fault, RetryLater, StopStream, statusOf } from '../model/errors.ts';
import { type Log, observed } from '../model/log.ts';
import { cancelled, sleep } from './cancel.ts';
import type { Client, EventsQuery, Page, Query } from './client.ts';
import type { Lane, Limiter } from './limiter.ts';

/** Reads pages of events or links, paced, with retries if they can help. The only place that retries a request. */
export interface EventsApi<Q extends Query = EventsQuery> {
  page(query: Q, options: PageOptions): Promise<Page>;
  /** Requests sent, retries included. */
  stats(): { requests: number; tooManyRequests: number };
}

export interface PageOptions {
  lane: Lane;
  signal?: AbortSignal | undefined;
  /** Fewer tries than usual, if the caller can handle a failure itself. */
  tries?: number | undefined;
}

export interface EventsApiOptions {
  client: Client;
  limiter: Limiter;
  log: Log;
  /** Labels the spans. */
  source?: string;
  retries?: { tries?: number; firstWaitMs?: number };
}

const TRIES = 6;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** Refusals of the whole stream, which would end the run, and how often each is retried after a good answer. */
const STRAY: ReadonlySet<number> = new Set([401, 403, 404]);
const MOST_STRAYS = 2;
/** A request that times out takes a minute each time: it gets fewer tries. */
const MOST_LATE = 3;

export function createEventsApi<Q extends Query = EventsQuery>({
  client,
  limiter,
  log,
  source = '',
  retries = {},
}: EventsApiOptions): EventsApi<Q> {
  const { tries: usualTries = TRIES, firstWaitMs = FIRST_WAIT_MS } = retries;
  const stats = { requests: 0, tooManyRequests: 0 };

  let hasAnswered = false;

  async function attempt(query: Query, { lane, signal }: PageOptions, onSend: () => void): Promise<Page> {
    const page = await limiter.run(
      lane,
      () => {
        onSend();
        stats.requests++;
        const { filters: _, ...names } = { filters: {}, ...query };
        const attributes = { source, lane, ...names, rows: 0 };
        return observed('request', attributes, async () => {
          const got = await client.get(query, signal);
          attributes.rows = got.records.length;
          return got;
        });
      },
      signal,
    );
    hasAnswered = true;
    return page;
  }

  /** After a 429 the limiter pauses every lane; all other waits happen here, as long as the service asked. */
  function waitMs(error: RetryLater, attempts: number): number {
    if (error.answer?.status === 429) return 0;
    if (error.afterMs !== undefined) return error.afterMs;
    return Math.min(firstWaitMs * 2 ** (attempts - 1) * (0.5 + Math.random()), LONGEST_WAIT_MS);
  }

  async function page(query: Query, options: PageOptions): Promise<Page> {
    const { signal, tries = usualTries } = options;
    const started = performance.now();
    let attempts = 0;
    let wasSent = false;
    /** A single refusal among good answers may come from a proxy or from one host of many: it counts only when it repeats. */
    const isStray = (error: unknown): error is StopStream =>
      error instanceof StopStream && STRAY.has(error.answer?.status ?? 0) && hasAnswered && attempts <= MOST_STRAYS;
    const isTooLate = (error: unknown): boolean =>
      error instanceof RetryLater && error.answer?.status === 0 && attempts >= MOST_LATE;
    const once = (): Promise<Page> => {
      wasSent = false;
      return attempt(query, options, () => {
        wasSent = true;
      });
    };
    try {
      return await pRetry(once, {
        retries: tries - 1,
        // The whole wait is slept below; p-retry's own would be added to the time that the service asked for.
        minTimeout: 0,
        // A request that was never sent got no turn, and the limiter has already retried for long enough.
        shouldRetry: ({ error }) => wasSent && !isTooLate(error) && (error instanceof RetryLater || isStray(error)),
        async onFailedAttempt({ error, attemptNumber, retriesLeft }) {
          attempts = attemptNumber;
          if (isTooLate(error)) return;
          if (wasSent && isStray(error) && retriesLeft > 0) {
            log.warn({ stream: query.stream, attempt: attemptNumber }, `trying again: ${error.message}`);
            await sleep(firstWaitMs, signal);
            return;
          }
          if (!(error instanceof RetryLater) || !wasSent) return;
          const isTooMany = error.answer?.status === 429;
          if (isTooMany) stats.tooManyRequests++;
          if (retriesLeft === 0) return;
          const wait = waitMs(error, attemptNumber);
          log.warn(
            {
              stream: query.stream,
              page: query.page,
              status: statusOf(error),
              code: error.answer?.code,
              attempt: attemptNumber,
              // The limiter pauses after a 429; if the service named no time, only the limiter knows it.
              waitMs: isTooMany ? error.afterMs : Math.round(wait),
            },
            `trying again${isTooMany ? ' when the pause of this key is over' : ''}: ${error.message}`,
          );
          if (wait > 0) await sleep(wait, signal);
        },
        ...(signal && { signal }),
      });
    } catch (error) {
      if (signal?.aborted) throw cancelled(signal);
      if (error instanceof RetryLater && wasSent) throw gaveUp(error, attempts, performance.now() - started);
      throw error;
    }
  }

  return {
    async page(query, options) {
      try {
        return await page(query, options);
      } catch (error) {
        throw error instanceof Fault ? error.at({ ...(source && { source }), stream: query.stream }) : error;
      }
    },
    stats: () => ({ ...stats }),
  };
}

function gaveUp(last: RetryLater, tries: number, ms: number): RetryLater {
  const often = tries === 1 ? 'after one try' : `after ${tries} tries over ${(ms / 1000).toFixed(1)} s`;
  return new RetryLater(`gave up ${often}: ${last.message}`, { ...last, cause: last });
}
