import { ANSWER_TOO_LARGE, type Page } from '../../api/client.ts';
import type { EventsApi } from '../../api/events-api.ts';
import type { Lane } from '../../api/limiter.ts';
import { RetryLater, StopStream } from '../../model/errors.ts';
import type { StreamName } from '../../model/streams.ts';
import { DAY_MS } from '../../model/window.ts';
import type { Profile } from '../profile.ts';
import type { PageQuery } from '../proof/answer.ts';
import type { ServiceClock } from '../service-clock.ts';

export interface RequestContext {
  lane: Lane;
  signal: AbortSignal;
}

export interface SendOptions extends RequestContext {
  api: EventsApi;
  stream: StreamName;
  filters: Readonly<Record<string, string>>;
  profile: Profile;
  clock: ServiceClock;
}

/** Sends a question, with the given number of tries or with all. */
export type Send = (query: PageQuery, tries?: number) => Promise<Page>;

/** `sendNumbered` sends the page number as given, `send` translates it if the service counts from 0. */
export function createSend({ api, stream, filters, profile, clock, lane, signal }: SendOptions): {
  send: Send;
  sendNumbered: Send;
} {
  const sendNumbered: Send = async ({ order, ...query }, tries) => {
    try {
      return await api.page({ stream, filters, sortOrder: order, ...query }, { lane, signal, ...(tries && { tries }) });
    } catch (error) {
      // A refusal shows the service's clock, too: our present may be its future. Differences of days are ignored.
      const { status = 0, serverNow = Number.NEGATIVE_INFINITY } = (error instanceof StopStream && error.answer) || {};
      if ([400, 422].includes(status) && serverNow > clock.now() - DAY_MS) clock.set(serverNow);
      throw error;
    }
  };
  const send: Send = async (query, tries) => {
    try {
      return await sendNumbered({ ...query, page: query.page - 1 + profile.firstPage }, tries);
    } catch (error) {
      // Recovery: count pages from 1 again.
      if (profile.firstPage === 1 || query.page > 1 || !(error instanceof StopStream)) throw error;
      profile.firstPage = 1;
      return sendNumbered(query, tries);
    }
  };
  return { send, sendNumbered };
}

/** Failures that another page may avoid. 401, 403 and the like would fail for any page. */
export function mayBeThisPage(error: unknown): error is RetryLater | StopStream {
  // Without an answer nothing is known about the page: nothing listens there, or the network is down.
  if (error instanceof RetryLater) return error.answer !== undefined && error.answer.status !== 429;
  if (!(error instanceof StopStream) || !error.answer) return false;
  return [413, 422].includes(error.answer.status) || error.answer.code === ANSWER_TOO_LARGE;
}
