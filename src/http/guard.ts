import rateLimit, { normalizeIP } from '@fastify/rate-limit';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Access, digestOf, mayDo, type Visitor } from './access.ts';
import { HttpError } from './http-error.ts';
import type { Role } from './tokens.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may; absent: a route that is not ours (the view of the queues, or nothing at all), which may be read. */
    role?: Role | 'open';
    /** Pages of other sites may link to it. */
    anySite?: boolean;
  }
  interface FastifyRequest {
    visitor: Visitor | undefined;
  }
}

/** Sent with everything. Nothing is loaded from elsewhere, nothing inline is run, and nobody may put us into a frame. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'self'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
};

const WRONG_TOKENS_A_MINUTE = 10;

export interface Guard {
  /** Throws what keeps a request out. It decides by the route that was matched: a path can be written in many ways. */
  letIn(request: FastifyRequest): Promise<void>;
  /** Counts a wrong token; throws where there were too many from this address. The right one is never refused for it. */
  onWrongToken(request: FastifyRequest): Promise<void>;
}

export async function createGuard(app: FastifyInstance, access: Access): Promise<Guard> {
  await app.register(rateLimit, { global: false });
  const addressOf = ({ ip }: FastifyRequest): string => normalizeIP(ip);
  const countWrong = app.createRateLimit({ max: WRONG_TOKENS_A_MINUTE, timeWindow: 60_000, keyGenerator: addressOf });
  const countSame = app.createRateLimit({
    max: 1,
    timeWindow: 60_000,
    keyGenerator: (request) => `${addressOf(request)} ${digestOf(givenBy(request))}`,
  });
  app.decorateRequest('visitor', undefined);

  const onWrongToken = async (request: FastifyRequest): Promise<void> => {
    // Whoever sends the same one again guesses nothing: a program with an old token is told that it is wrong, however often.
    const same = await countSame(request);
    if (!same.isAllowed && same.isExceeded) return;
    const counted = await countWrong(request);
    if (counted.isAllowed || !counted.isExceeded) return;
    throw new HttpError(429, 'too many wrong tokens from this address', {
      next: `wait ${counted.ttlInSeconds} s, then try again`,
      retryAfter: counted.ttlInSeconds,
    });
  };

  return {
    onWrongToken,
    async letIn(request) {
      const { headers, method, is404 } = request;
      const { role, anySite } = request.routeOptions.config;
      access.checkHost(headers);
      if (!anySite) access.checkSite(headers);
      const isRead = method === 'GET' || method === 'HEAD';
      if (role === undefined && !isRead && !is404)
        throw new HttpError(405, 'the view of the queues is for looking only', { next: 'use the verbs of the API' });
      const who = access.identify(headers);
      if (who !== 'wrong') request.visitor = who;
      if (role === 'open') return;
      if (who === 'wrong') await onWrongToken(request);
      if (who === 'wrong' || who === undefined)
        throw new HttpError(401, 'sign in first', {
          next: 'open the page and give the token, or send it as a bearer token',
        });
      const needed = role ?? 'read';
      if (!mayDo(who, needed))
        throw new HttpError(403, `the token ${who.name} has the role ${who.role}, and this needs ${needed}`, {
          kept: 'nothing was changed',
          next: 'use a token with that role: http.tokens of the config has them',
        });
      if (!isRead) access.checkChange(headers, who);
    },
  };
}

/** Every token of a request together: a wrong one beside a known wrong one is still a new guess. */
const givenBy = ({ headers, body }: FastifyRequest): string =>
  JSON.stringify([headers.authorization, (body as { token?: unknown } | undefined)?.token]);
