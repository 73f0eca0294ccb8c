import { type Instant, parseInstant } from '../model/instant.ts';

/** Never zero, which would hammer; never millennia, which a garbled header asks for. */
const SHORTEST_MS = 1000;
const LONGEST_MS = 120_000;

/** Below this, digits count seconds to wait; from here on (the year 2001) they are a point in time. */
const FIRST_EPOCH_SECOND = 1e9;

/**
 * How long the service asks us to wait, or undefined where it says nothing usable. `Retry-After` comes as seconds, an
 * HTTP date, epoch seconds or epoch milliseconds; `X-RateLimit-Reset` as epoch seconds or milliseconds. Points in time are
 * measured against `now`, the service's own clock where it gave one: ours may be minutes off. `X-RateLimit-Limit` is
 * never looked at: it is described per hour and is per second in practice.
 */
export function retryAfterMs(headers: { get(name: string): string | null }, now: Instant): number | undefined {
  return waitOf(headers.get('retry-after'), now) ?? untilReset(headers.get('x-ratelimit-reset'), now);
}

function waitOf(header: string | null, now: Instant): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) < FIRST_EPOCH_SECOND) return clamp(Number(text) * 1000);
  return until(text, now);
}

function untilReset(header: string | null, now: Instant): number | undefined {
  const text = header?.trim() ?? '';
  return Number(text) < FIRST_EPOCH_SECOND ? undefined : until(text, now);
}

/** A moment that has passed says nothing about how long to wait. */
function until(text: string, now: Instant): number | undefined {
  const moment = parseInstant(text);
  return moment === undefined || moment < now ? undefined : clamp(moment - now);
}

const clamp = (ms: number): number => Math.min(Math.max(ms, SHORTEST_MS), LONGEST_MS);
