/** The budget of a key: so many requests a second, counted in one of the three ways that services use. */
export interface RateDecision {
  allowed: boolean;
  remaining: number;
  /** When the window resets, epoch milliseconds. */
  resetAt: number;
}

export type LimiterForm = 'fixed' | 'sliding' | 'weighted';

export interface Limiter {
  take(form: LimiterForm, perSecond: number, now: number): RateDecision;
}

const SECOND = 1000;
const PLAN_LIMITS = { free: 0, pro: 2, business: 4, advanced: 8, enterprise: null } as const;
export type Plan = keyof typeof PLAN_LIMITS;

/** Requests per second on the analytics endpoints; null is no limit, 0 no access. */
export const planLimit = (plan: Plan): number | null => PLAN_LIMITS[plan];

export function createLimiter(): Limiter {
  // All three forms keep their books all the time, so that the form can be changed at run time.
  let granted: number[] = [];

  const fixed = (limit: number, now: number): RateDecision => {
    const start = Math.floor(now / SECOND) * SECOND;
    const used = granted.filter((at) => at >= start).length;
    return decision(used, limit, start + SECOND);
  };

  const sliding = (limit: number, now: number): RateDecision => {
    const recent = granted.filter((at) => at > now - SECOND);
    return decision(recent.length, limit, (recent[0] ?? now) + SECOND);
  };

  /** The last second counts by the part of it that a sliding window would still see: a fresh second grants no burst. */
  const weighted = (limit: number, now: number): RateDecision => {
    const start = Math.floor(now / SECOND) * SECOND;
    const before = granted.filter((at) => at >= start - SECOND && at < start).length;
    const current = granted.filter((at) => at >= start).length;
    const used = Math.floor(before * (1 - (now - start) / SECOND)) + current;
    return decision(used, limit, start + SECOND);
  };

  const forms = { fixed, sliding, weighted };
  return {
    take(form, perSecond, now) {
      granted = granted.filter((at) => at > now - 2 * SECOND);
      const result = forms[form](perSecond, now);
      if (result.allowed) granted.push(now);
      return result;
    },
  };
}

function decision(used: number, limit: number, resetAt: number): RateDecision {
  const allowed = used < limit;
  return { allowed, remaining: allowed ? limit - used - 1 : 0, resetAt };
}
