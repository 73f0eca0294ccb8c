import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { envelope } from './params.ts';

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

export const errorAnswer = (
  { status, code, message }: { status: number; code: string; message: string },
  headers: Headers = {},
): Answer => json(status, envelope(code, message), headers);

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

/** The four headers of the contract. `now` is by the service's clock, like the decision. */
export function rateHeaders({ allowed, remaining, resetAt }: RateDecision, limit: number, now: number): Headers {
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(Math.ceil(resetAt / 1000)),
    ...(!allowed && { 'Retry-After': String(Math.max(1, Math.ceil((resetAt - now) / 1000))) }),
  };
}

export interface RateDecision {
  allowed: boolean;
  remaining: number;
  /** When the window resets, epoch milliseconds. */
  resetAt: number;
}

/** The budget of a key. */
export interface Limiter {
  take(limit: number, now: number): RateDecision;
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

/** So many requests in any second, or minute. */
export function createLimiter(span = SECOND): Limiter {
  let granted: number[] = [];
  return {
    take(limit, now) {
      granted = granted.filter((at) => at > now - span);
      const allowed = granted.length < limit;
      const resetAt = (granted[0] ?? now) + span;
      const remaining = allowed ? limit - granted.length - 1 : 0;
      if (allowed) granted.push(now);
      return { allowed, remaining, resetAt };
    },
  };
}
