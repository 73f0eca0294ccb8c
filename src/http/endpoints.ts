import rateLimit, { normalizeIP } from '@fastify/rate-limit';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { eitherSignal } from '../api/cancel.ts';
import { audited } from '../cursor/audit.ts';
import type { Log } from '../model/log.ts';
import { type Access, digestOf, mayDo, type Visitor } from './access.ts';
import { HttpError, type JsonSchema, schemaOf, z } from './answers.ts';
import type { ControlDeps } from './dependencies.ts';
import { FileAnswer, pathId, type Route, type RouteRequest } from './route.ts';
import type { Role } from './tokens.ts';

type Deps = Pick<ControlDeps, 'state' | 'dependencies' | 'signal'> & Pick<Guard, 'onWrongToken'>;
type Asked = RouteRequest<never, never>;

/** Serves a route: checks the request, writes the audit trail, and fails as soon as a dependency stops responding. */
export function addEndpoint(app: FastifyInstance, route: Route, deps: Deps): void {
  const { method, path, media, status = 200, uses = ['state'] } = route;
  const check = checkerOf(route);
  app.route({
    method,
    // A HEAD request would still run the whole export.
    exposeHeadRoute: !media,
    url: path.replace(/\{(\w+)\}/g, ':$1'),
    config: { role: route.role },
    handler: async (request, reply) => {
      const checked = check(request);
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const either = eitherSignal(gone.signal, deps.signal);
      const asked = {
        ...checked,
        visitor: request.visitor,
        address: request.ip,
        // Behind a proxy that speaks TLS, the cookie must be marked Secure. A client that forges the header harms only itself.
        isSecure: request.protocol === 'https' || request.headers['x-forwarded-proto'] === 'https',
        setCookie: (cookie: string) => void reply.header('set-cookie', cookie),
        onWrongToken: () => deps.onWrongToken(request),
        signal: either.signal,
      } as Asked;
      try {
        const answer = await deps.dependencies.watch(runHandler(deps, route, asked), uses);
        reply.status(status).header('cache-control', 'no-store');
        return await (answer instanceof FileAnswer ? sendFile(reply, answer.file) : reply.send(answer));
      } finally {
        either.release();
      }
    },
  });
}

function runHandler({ state }: Deps, { audit, handle }: Route, asked: Asked): Promise<object | undefined> {
  const note = audit?.(asked);
  if (!note) return handle(asked);
  const entry = { actor: asked.visitor?.name ?? 'nobody', from: asked.address, ...note };
  return audited(state, entry, () => handle(asked));
}

function checkerOf({ id: idShape = pathId, query: queryShape = z.strictObject({}), body }: Route) {
  const { properties = {} } = schemaOf(queryShape);
  return (request: FastifyRequest) => ({
    id: Object.values(request.params as Record<string, string>).map((id) => checked(idShape, id, 'the path'))[0] ?? '',
    query: checked(queryShape, typed(request.query as Record<string, unknown>, properties), 'the query'),
    body: body && checked(body, request.body, 'the body'),
  });
}

function checked<T extends z.ZodType>(shape: T, value: unknown, place: string): z.output<T> {
  const parsed = shape.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = [place, ...(issue?.path ?? [])].join(', ');
  throw new HttpError(400, `${at}: ${issue ? messageFor(issue) : 'not as described'}`, {
    next: 'see /api/openapi.json',
  });
}

const UNITS: Readonly<Record<string, string>> = { string: ' characters', array: ' entries' };

/** A message for users; zod's own messages are for programmers. */
function messageFor(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'invalid_type') return `must be of the type ${issue.expected}`;
  if (issue.code === 'unrecognized_keys') return `there is no ${issue.keys.join(', ')}`;
  if (issue.code === 'too_small') return `must be at least ${issue.minimum}${UNITS[issue.origin] ?? ''}`;
  if (issue.code === 'too_big') return `must be at most ${issue.maximum}${UNITS[issue.origin] ?? ''}`;
  return issue.code === 'invalid_union' ? 'matches none of the described forms' : issue.message;
}

/** Query parameters are text: numbers, booleans and lists are parsed according to their schema. */
function typed(
  query: Readonly<Record<string, unknown>>,
  schemas: Readonly<Record<string, JsonSchema | boolean>>,
): object {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const schema = schemas[name];
      const type = typeof schema === 'object' ? schema.type : undefined;
      if (type === 'integer' && typeof value === 'string' && /^-?\d{1,16}$/.test(value)) return [name, Number(value)];
      if (type === 'boolean' && (value === 'true' || value === 'false')) return [name, value === 'true'];
      return [name, type === 'array' ? [value].flat() : value];
    }),
  );
}

function sendFile(reply: FastifyReply, { type, body, headers = {}, trailers = {} }: FileAnswer['file']): FastifyReply {
  for (const [name, value] of Object.entries(trailers)) reply.trailer(name, value);
  return reply.type(type).headers(headers).send(body);
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The lowest role that may call it. Absent for Bull Board and for unknown routes, which the role `read` may read. */
    role?: Role | 'open';
    /** Whether pages of other sites may request it. */
    anySite?: boolean;
  }
  interface FastifyRequest {
    visitor: Visitor | undefined;
  }
}

/** Headers of every response: no content from other origins, no inline scripts, no framing. */
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

export type Guard = Awaited<ReturnType<typeof createGuard>>;

export async function createGuard(app: FastifyInstance, access: Access, log: Log) {
  await app.register(rateLimit, { global: false });
  const addressOf = ({ ip }: FastifyRequest): string => normalizeIP(ip);
  const countWrong = app.createRateLimit({ max: WRONG_TOKENS_A_MINUTE, timeWindow: 60_000, keyGenerator: addressOf });
  const countSame = app.createRateLimit({
    max: 1,
    timeWindow: 60_000,
    keyGenerator: (request) => `${addressOf(request)} ${digestOf(tokensOf(request))}`,
  });
  app.decorateRequest('visitor', undefined);

  /** Counts a wrong token, and throws after too many from one address. Valid tokens are never refused because of it. */
  const onWrongToken = async (request: FastifyRequest): Promise<void> => {
    // Repeating the same wrong token is not a guess: a program with an old token always gets 401, never 429.
    const same = await countSame(request);
    if (!same.isAllowed && same.isExceeded) return;
    const counted = await countWrong(request);
    if (counted.isAllowed) return;
    const address = addressOf(request);
    if (counted.remaining === WRONG_TOKENS_A_MINUTE - 1)
      log.warn(
        { address, path: request.routeOptions.url },
        `${address} sent a wrong token to the control room; more from this address are not logged for a minute`,
      );
    if (!counted.isExceeded) return;
    throw new HttpError(429, 'too many wrong tokens from this address', {
      next: `wait ${counted.ttlInSeconds} s, then try again`,
      retryAfter: counted.ttlInSeconds,
    });
  };

  return {
    onWrongToken,
    /** Throws if the request is not allowed. Checks the matched route, because a path can be written in many ways. */
    async authorize(request: FastifyRequest): Promise<void> {
      const { headers, method, is404 } = request;
      const { role, anySite } = request.routeOptions.config;
      if ((request.raw.headersDistinct.host?.length ?? 0) > 1)
        throw new HttpError(400, 'the request has more than one Host header', { next: 'send one' });
      access.checkHost(headers);
      if (!anySite) access.checkSite(headers);
      const isRead = method === 'GET' || method === 'HEAD';
      if (role === undefined && !isRead && !is404)
        throw new HttpError(405, 'the queue view is read-only', { next: 'use the API' });
      const who = access.identify(headers);
      if (who !== 'wrong') request.visitor = who;
      // On open routes too: otherwise /api/session could be used to guess tokens without a limit.
      if (who === 'wrong') await onWrongToken(request);
      if (role === 'open') return;
      if (who === 'wrong' || who === undefined)
        throw new HttpError(401, 'sign in first', {
          next: 'open the page and enter the token, or send it as a bearer token',
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

/** All tokens of a request together: a new wrong token next to a known one is still a new guess. */
const tokensOf = ({ headers, body }: FastifyRequest): string =>
  JSON.stringify([headers.authorization, (body as { token?: unknown } | undefined)?.token]);
