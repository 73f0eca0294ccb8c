import { createLimiter, type Limiter } from '../../../src/sandbox/answer.ts';

/** The three ways in which services count a second. The sandbox's own is `sliding`. */
export type LimiterForm = 'fixed' | 'sliding' | 'weighted';

const SECOND = 1000;

export function limiterOf(form: LimiterForm): Limiter {
  if (form === 'sliding') return createLimiter();
  let granted: number[] = [];
  return {
    take(limit, now) {
      granted = granted.filter((at) => at > now - 2 * SECOND);
      const start = Math.floor(now / SECOND) * SECOND;
      const before = granted.filter((at) => at >= start - SECOND && at < start).length;
      const current = granted.filter((at) => at >= start).length;
      // Weighted: the last second counts by the part of it that a sliding window would still see, so that a fresh one grants no burst.
      const used = current + (form === 'weighted' ? Math.floor(before * (1 - (now - start) / SECOND)) : 0);
      const allowed = used < limit;
      if (allowed) granted.push(now);
      return { allowed, remaining: allowed ? limit - used - 1 : 0, resetAt: start + SECOND };
    },
  };
}
