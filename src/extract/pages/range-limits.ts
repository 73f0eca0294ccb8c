import type { Page } from '../../api/client.ts';
import { RetryLater, StopStream } from '../../model/errors.ts';
import type { Instant } from '../../model/instant.ts';
import { HOUR_MS } from '../../model/window.ts';
import type { Profile } from '../profile.ts';
import type { PageQuery } from '../proof/answer.ts';

/** Services refuse long ranges or ends in the future, or take too long for them. Asking for one row finds out what they answer. */

interface Limits {
  profile: Profile;
  /** The longest range that was answered, and whether one that ends in the future was: neither can be the cause then. */
  answered: { ms: number; ahead: boolean; isRefused?: boolean };
  now(): Instant;
  /** Sends a question whose rows nobody needs, with the given number of tries or with all. */
  send(query: PageQuery, tries?: number): Promise<Page>;
}

const FEW_TRIES = 3;

/** A range this short is not shortened further, whatever the answer. */
export const SHORT_MS = HOUR_MS;

/** Finds out whether a question failed because of its end or its length, and notes what to ask instead. Returns whether it did. */
export async function findWhatIsRefused(query: PageQuery, error: unknown, limits: Limits): Promise<boolean> {
  const { profile, answered, now, send } = limits;
  if (!mayBeTheRange(error)) return false;
  // A timeout takes minutes, and the question was tried several times already.
  const few = error instanceof RetryLater && error.answer?.status === 0 ? 1 : FEW_TRIES;
  const isAnswered = async (part: Partial<PageQuery>, tries?: number): Promise<boolean> => {
    try {
      await send({ ...query, page: 1, limit: 1, ...part }, tries);
      return true;
    } catch (failure) {
      if (mayBeTheRange(failure)) return false;
      throw failure;
    }
  };
  const present = now();
  // Such ends are known to be refused; this one was sent because our clock is ahead of the service's, as this answer shows.
  if (profile.endsNow && query.page === 1 && query.start < present && query.end > present) return true;
  const isAhead = query.end > present && !profile.endsNow && !answered.ahead;
  const length = Math.min(query.end, present) - query.start;
  const isLong = length > SHORT_MS && query.end - query.start > answered.ms;
  if ((!isAhead && !isLong) || answered.isRefused) return false;
  // If the shortest range is refused as well, the cause is something else, such as the key or the plan.
  const short = Math.min(query.start + SHORT_MS, present);
  if (short > query.start && !(await isAnswered({ end: short }, FEW_TRIES))) {
    answered.isRefused = answered.ms === 0 && error instanceof StopStream;
    return false;
  }
  // If one row of the same range is readable, the page is too large, or a row on it is at fault.
  if (await isAnswered({}, few)) return false;
  if (isAhead && length > 0 && (await isAnswered({ end: present }, few))) {
    // Retry in full, because an intermittent fault is neither.
    profile.endsNow = !(await isAnswered({}));
    return profile.endsNow;
  }
  if (!isLong) return false;
  for (let most = (query.end - query.start) / 2; most > SHORT_MS; most /= 2) {
    const end = query.start + most;
    if (end > present && profile.endsNow) continue;
    if (!(await isAnswered({ end: query.start + most }, few))) continue;
    if (await isAnswered({})) return false;
    profile.mostRangeMs = Math.floor(most);
    profile.limitedAt = present;
    return true;
  }
  return false;
}

export const mayBeTheRange = (error: unknown): boolean =>
  (error instanceof StopStream && [400, 403, 413, 422].includes(error.answer?.status ?? 0)) ||
  (error instanceof RetryLater && error.answer !== undefined && error.answer.status !== 429);

/** Recovery: the range is older than the plan retains, or than the service. It answers other questions, so the stream is readable. */
export function unlessRefused(error: unknown): undefined {
  if (!(error instanceof StopStream)) throw error;
}

/** Recovery: the start may be older than the plan retains. If the key is refused, the next request says so. */
export function unlessTooOld(error: unknown): undefined {
  if (!(error instanceof StopStream) || error.answer?.status !== 403) throw error;
}
