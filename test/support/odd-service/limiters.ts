import { createLimiter, type Limiter } from '../../../src/sandbox/answer.ts';

/** Three ways of counting requests a second. The sandbox's own is `sliding`. */
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
      // Weighted: the last second counts in proportion to its overlap with a sliding window, so that a fresh one grants no burst.
      const used = current + (form === 'weighted' ? Math.floor(before * (1 - (now - start) / SECOND)) : 0);
      const allowed = used < limit;
      if (allowed) granted.push(now);
      return { allowed, remaining: allowed ? limit - used - 1 : 0, resetAt: start + SECOND };
    },
  };
}
