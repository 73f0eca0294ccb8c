import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { envelope } from './params.ts';
import type { Traits } from './traits.ts';

const compress = promisify(gzip);
/** Below this, the gzip header costs more than it saves. */
const WORTH_COMPRESSING = 1024;

export type Headers = Record<string, string>;

export interface Answer {
  status: number;
  body: string;
  headers: Headers;
}

export const json = (status: number, value: unknown, headers: Headers = {}): Answer => ({
  status,
  body: JSON.stringify(value),
  headers: { 'Content-Type': 'application/json', ...headers },
});

/** An error in the shape that the trait asks for; without it, the contract's envelope. */
export function errorAnswer(
  { status, code, message }: { status: number; code: string; message: string },
  form: Traits['errorBody'],
  headers: Headers = {},
): Answer {
  switch (form) {
    case 'html':
      return {
        status,
        body: `<!doctype html><html><head><title>${status}</title></head><body><h1>${status}</h1><p>nginx</p></body></html>`,
        headers: { 'Content-Type': 'text/html', ...headers },
      };
    case 'empty':
      return { status, body: '', headers };
    case 'envelope200':
      return json(200, envelope(code, message), headers);
    case 'unknown-code':
      return json(status, envelope('quantum_flux', message), headers);
    case 'no-doc-url':
      return json(status, { error: { code, message } }, headers);
    default:
      return json(status, envelope(code, message), headers);
  }
}

/** Writes the answer. `cut` sends half of the promised bytes and breaks the connection. */
export async function send(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
  { date, cut = false }: { date: number; cut?: boolean },
): Promise<void> {
  let body: Buffer = Buffer.from(answer.body);
  const headers: Headers = { Date: new Date(date).toUTCString(), Vary: 'Accept-Encoding', ...answer.headers };
  if (body.length > WORTH_COMPRESSING && /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) {
    body = await compress(body, { level: 1 });
    headers['Content-Encoding'] = 'gzip';
  }
  headers['Content-Length'] = String(body.length);
  response.writeHead(answer.status, headers);
  if (!cut) {
    response.end(request.method === 'HEAD' ? undefined : body);
    return;
  }
  response.write(body.subarray(0, Math.floor(body.length / 2)), () => response.destroy());
}

/** The four headers of the contract, or what the traits make of them. */
export function rateHeaders(decision: RateDecision, limit: number, traits: Traits, now: number): Headers {
  const headers: Headers = {};
  const shown = traits.rateHeaders === undefined || (traits.rateHeaders === 'only-429' && !decision.allowed);
  if (shown) {
    headers['X-RateLimit-Limit'] = String(limit);
    headers['X-RateLimit-Remaining'] = String(decision.remaining);
    const reset = resetText(traits.reset ?? 'seconds', decision.resetAt);
    if (reset !== undefined) headers['X-RateLimit-Reset'] = reset;
  }
  if (!decision.allowed) {
    const after = retryAfterText(traits.retryAfter ?? 'seconds', decision.resetAt, now);
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

/** The budget of a key: so many requests in a second or a minute, counted in one of the three ways that services use. */
export interface RateDecision {
  allowed: boolean;
  remaining: number;
  /** When the window resets, epoch milliseconds. */
  resetAt: number;
}

export type LimiterForm = 'fixed' | 'sliding' | 'weighted';

interface Limiter {
  take(form: LimiterForm, limit: number, now: number): RateDecision;
}

const SECOND = 1000;
export const MINUTE = 60_000;
const PLAN_LIMITS = { free: 0, pro: 2, business: 4, advanced: 8, enterprise: null } as const;
export type Plan = keyof typeof PLAN_LIMITS;

/** Requests per second on the analytics endpoints; null is no limit, 0 no access. */
export const planLimit = (plan: Plan): number | null => PLAN_LIMITS[plan];

const STANDARD_LIMITS = { free: 60, pro: 600, business: 1200, advanced: 3000, enterprise: null } as const;

/** Requests per minute on all other endpoints. */
export const standardLimit = (plan: Plan): number | null => STANDARD_LIMITS[plan];

export function createLimiter(span = SECOND): Limiter {
  // All three forms keep their books all the time, so that the form can be changed at run time.
  let granted: number[] = [];

  const fixed = (limit: number, now: number): RateDecision => {
    const start = Math.floor(now / span) * span;
    const used = granted.filter((at) => at >= start).length;
    return decision(used, limit, start + span);
  };

  const sliding = (limit: number, now: number): RateDecision => {
    const recent = granted.filter((at) => at > now - span);
    return decision(recent.length, limit, (recent[0] ?? now) + span);
  };

  /** The last span counts by the part of it that a sliding window would still see: a fresh one grants no burst. */
  const weighted = (limit: number, now: number): RateDecision => {
    const start = Math.floor(now / span) * span;
    const before = granted.filter((at) => at >= start - span && at < start).length;
    const current = granted.filter((at) => at >= start).length;
    const used = Math.floor(before * (1 - (now - start) / span)) + current;
    return decision(used, limit, start + span);
  };

  const forms = { fixed, sliding, weighted };
  return {
    take(form, limit, now) {
      granted = granted.filter((at) => at > now - 2 * span);
      const result = forms[form](limit, now);
      if (result.allowed) granted.push(now);
      return result;
    },
  };
}

function decision(used: number, limit: number, resetAt: number): RateDecision {
  const allowed = used < limit;
  return { allowed, remaining: allowed ? limit - used - 1 : 0, resetAt };
}
