import type { Headers } from './answer.ts';
import type { Verdict } from './limiter.ts';
import type { Traits } from './traits.ts';

/** The four headers of the contract, or what the traits make of them. */
export function rateHeaders(verdict: Verdict, limit: number, traits: Traits, now: number): Headers {
  const headers: Headers = {};
  const shown = traits.rateHeaders === undefined || (traits.rateHeaders === 'only-429' && !verdict.allowed);
  if (shown) {
    headers['X-RateLimit-Limit'] = String(limit);
    headers['X-RateLimit-Remaining'] = String(verdict.remaining);
    const reset = resetText(traits.reset ?? 'seconds', verdict.resetAt);
    if (reset !== undefined) headers['X-RateLimit-Reset'] = reset;
  }
  if (!verdict.allowed) {
    const after = retryAfterText(traits.retryAfter ?? 'seconds', verdict.resetAt, now);
    if (after !== undefined) headers['Retry-After'] = after;
  }
  return headers;
}

function resetText(form: NonNullable<Traits['reset']>, resetAt: number): string | undefined {
  const forms = { seconds: String(Math.ceil(resetAt / 1000)), ms: String(resetAt), none: undefined, garbage: 'soon' };
  return forms[form];
}

function retryAfterText(form: NonNullable<Traits['retryAfter']>, resetAt: number, now: number): string | undefined {
  const forms = {
    seconds: String(Math.max(1, Math.ceil((resetAt - now) / 1000))),
    date: new Date(Math.ceil(resetAt / 1000) * 1000).toUTCString(),
    epoch: String(Math.ceil(resetAt / 1000)),
    'epoch-ms': String(resetAt),
    none: undefined,
    garbage: 'a little while',
    zero: '0',
  };
  return forms[form];
}
