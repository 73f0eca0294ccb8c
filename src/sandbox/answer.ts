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

/** The four headers of the contract. Budgets are counted in real time; the service's clock may be ahead of it. */
export function rateHeaders(decision: RateDecision, limit: number, aheadMs: number): Headers {
  const { allowed, remaining, resetAt } = decision;
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(Math.ceil((resetAt + aheadMs) / 1000)),
    ...(!allowed && { 'Retry-After': String(Math.max(1, Math.ceil((resetAt - Date.now()) / 1000))) }),
  };
}

type RateDecision = ReturnType<Limiter['take']>;

/** The budget of a key. `resetAt`: when the window resets, epoch milliseconds. */
export interface Limiter {
  take(limit: number, now: number): { allowed: boolean; remaining: number; resetAt: number };
}

const SECOND = 1000;
export const MINUTE = 60_000;
/** Requests per second on the analytics endpoints, and per minute on all others; null is no limit, 0 no access. */
export const PLAN_LIMITS = {
  free: { perSecond: 0, perMinute: 60 },
  pro: { perSecond: 2, perMinute: 600 },
  business: { perSecond: 4, perMinute: 1200 },
  advanced: { perSecond: 8, perMinute: 3000 },
  enterprise: { perSecond: null, perMinute: null },
} as const;
export type Plan = keyof typeof PLAN_LIMITS;

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
