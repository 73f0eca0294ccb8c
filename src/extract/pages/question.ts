import type { Instant } from '../../model/instant.ts';
import type { Profile } from '../profile.ts';
import { type PageQuery, WIDENED_MS } from '../proof/answer.ts';
import { FAR_AHEAD_MS } from '../proof/ends.ts';
import type { Evidence } from '../proof/evidence.ts';
import type { ServiceClock } from '../service-clock.ts';
import { firstStep, type Step } from './page-steps.ts';

/** A page to ask for. Without an end: everything there is, the future included. */
export interface PageRequest {
  order: 'asc' | 'desc';
  start: Instant;
  end?: Instant | undefined;
  /** By default the first page, of the largest size. */
  step?: Pick<Step, 'page' | 'limit'> | undefined;
}

/** Services round ends down, and read them in other time zones: an end this far ahead includes the present. */
const AHEAD_MS = WIDENED_MS;

interface Asking {
  evidence: Evidence;
  profile: Profile;
  clock: ServiceClock;
  earliest: Instant;
}

/** Converts a request into a query no longer than the service answers, cut on the side that is not wanted. */
export function createQuestions({ evidence, profile, clock, earliest }: Asking): (request: PageRequest) => PageQuery {
  const mostRange = (): number => Math.min(evidence.wholeMs(), profile.mostRangeMs ?? Number.POSITIVE_INFINITY);
  /** If ranges are short, most of one must lie in the past. */
  const endOfAll = (): Instant => clock.now() + (profile.endsNow ? 0 : Math.min(AHEAD_MS, mostRange() / 4));
  let ahead = endOfAll();
  return ({ order, start, end, step = firstStep(profile.pageRows) }) => {
    // Fixed, so that all pages of a question have the same end.
    const isMoved = profile.endsNow || mostRange() < 4 * AHEAD_MS || clock.now() + FAR_AHEAD_MS > ahead;
    if (step.page === 1 && isMoved) ahead = endOfAll();
    const { page, limit } = step;
    const last = profile.endsNow ? Math.min(end ?? ahead, ahead) : (end ?? ahead);
    const from = Math.max(start, earliest);
    const query = { order, start: from, end: Math.max(from, last), page, limit };
    const most = mostRange();
    if (query.end - query.start <= most) return query;
    return order === 'asc' ? { ...query, end: query.start + most } : { ...query, start: query.end - most };
  };
}
