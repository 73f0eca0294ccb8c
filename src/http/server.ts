import { constants } from 'node:zlib';
import compress from '@fastify/compress';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { ConfigError } from '../model/errors.ts';
import { type AccessOptions, createAccess } from './access.ts';
import { BUG, errorAnswer, HttpError } from './answers.ts';
import type { ControlDeps } from './dependencies.ts';
import { addEndpoint, createGuard, type Guard, SECURITY_HEADERS } from './endpoints.ts';
import { createEvents, createLive, type LiveTimings } from './live.ts';
import { METRICS_TYPE, type Metrics } from './metrics.ts';
import { addPage, QUEUES_PATH, queueBoard, withinPolicy } from './pages.ts';
import { describeApi, type Route } from './route.ts';
import { analyticsRoutes } from './routes/analytics.ts';
import { backfillRoutes } from './routes/backfills.ts';
import { coverageRoutes } from './routes/coverage.ts';
import { diagnosticsRoutes } from './routes/diagnostics.ts';
import { exportRoutes } from './routes/export.ts';
import { maintainRoutes } from './routes/maintain.ts';
import { overviewRoutes } from './routes/overview.ts';
import { quarantineRoutes } from './routes/quarantine.ts';
import { runsRoutes } from './routes/runs.ts';
import { sessionRoutes } from './routes/session.ts';
import { syncRoutes } from './routes/sync.ts';
import { createVerificationRuns, verificationRoutes } from './routes/verifications.ts';

interface HttpOptions extends AccessOptions {
  host: string;
  port: number;
  /** Which proxies may state a client's address: Fastify's `trustProxy`. */
  trustProxy?: boolean | string[];
  liveTimings?: LiveTimings;
}

export type HttpServer = Awaited<ReturnType<typeof serveHttp>>;

/** Concurrent connections: in total, and from one address if there is no proxy in front. */
const MOST_CONNECTIONS = 1000;
const MOST_OF_ONE_ADDRESS = 300;

/** The page, the API, health, metrics and the queues, behind one access check. */
export async function serveHttp(deps: ControlDeps, metrics: Metrics, options: HttpOptions) {
  const { basePath: base = '' } = options;
  const access = createAccess(deps.state, options);
  await access.refresh();
  const live = createLive(deps, options.liveTimings);
  const events = createEvents(live, access);
  const verifications = createVerificationRuns(deps, () => live.changed('verifications'));
  const routes = [
    ...overviewRoutes(deps),
    ...coverageRoutes(deps),
    ...analyticsRoutes(deps),
    ...runsRoutes(deps),
    ...backfillRoutes(deps),
    ...quarantineRoutes(deps),
    ...syncRoutes(deps),
    ...exportRoutes(deps),
    ...maintainRoutes(deps),
    ...diagnosticsRoutes(deps),
    ...verificationRoutes(deps, verifications),
    ...sessionRoutes(access, deps),
  ];

  const refuse = createRefusal(deps, base);
  const app = createApp(options, refuse);
  const guard = await createGuard(app, access, deps.log);
  addChecks(app, deps, { guard, routes, refuse });
  await addCompression(app);
  for (const route of routes) addEndpoint(app, route, { ...deps, ...guard });
  const description = describeApi(routes, { version: deps.version, base });
  app.get('/api/openapi.json', { config: { role: 'read' } }, () => description);
  addEvents(app, events);
  addProbes(app, deps, metrics);
  if (base !== '') app.get(base, OPEN, (_, reply) => reply.redirect(`${base}/`, 308));
  await addPage(app);
  await addBoard(app, deps, base);

  const url = await listen(app, options);
  return {
    url: url + base,
    replaceTokens: access.replaceTokens,
    async close() {
      live.close();
      events.close();
      await app.close();
      await verifications.close();
    },
  };
}

type Refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

const OPEN = { config: { role: 'open' } } as const;

function createApp({ basePath: base = '', trustProxy = false }: HttpOptions, refuse: Refuse): FastifyInstance {
  const app = Fastify({
    bodyLimit: 65_536,
    trustProxy,
    // The time to send a request, not to respond: slower clients only occupy a connection.
    requestTimeout: 20_000,
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 2000 },
    // Connections for server-sent events never end on their own.
    forceCloseConnections: true,
    routerOptions: { maxParamLength: 1000 },
    rewriteUrl: ({ url = '/' }) => (url.startsWith(`${base}/`) ? url.slice(base.length) : url),
    frameworkErrors: (error, request, reply) => void refuse(error, request as never, reply as never),
  });
  app.setErrorHandler(refuse);
  capConnections(app, trustProxy ? MOST_CONNECTIONS : MOST_OF_ONE_ADDRESS);
  return app;
}

/** Responds to any error, and never sends an error as it was thrown. */
function createRefusal({ log, dependencies }: ControlDeps, base: string): Refuse {
  /** An unexpected error may be caused by a dependency that is down. */
  const unavailableError = async (error: unknown): Promise<unknown> => {
    const { parts } = await dependencies.readiness();
    const down = parts.find(({ ok }) => !ok);
    return down ? new HttpError(503, `${down.name} is unavailable: ${down.message}`, { next: 'see /readyz' }) : error;
  };
  return async (error, request, reply) => {
    const answer = errorAnswer(error) ?? errorAnswer(await unavailableError(error)) ?? BUG;
    const { status } = answer.error;
    if (answer === BUG) log.error({ err: error, path: request.routeOptions.url }, 'a request failed because of a bug');
    if (status === 401 && isBoard(request)) return reply.redirect(`${base}/`, 303);
    if (status === 401) reply.header('www-authenticate', 'Bearer');
    if (error instanceof HttpError && error.retryAfter !== undefined) reply.header('retry-after', error.retryAfter);
    return reply.headers(SECURITY_HEADERS).status(status).header('cache-control', 'no-store').send(answer);
  };
}

function addChecks(
  app: FastifyInstance,
  deps: ControlDeps,
  { guard, routes, refuse }: { guard: Guard; routes: readonly Route[]; refuse: Refuse },
): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.headers({ ...SECURITY_HEADERS, vary: 'accept-encoding' });
    // Data from the state must not be cached. Files of the page set their own cache-control.
    if (isBoard(request) || request.routeOptions.url === '/metrics') reply.header('cache-control', 'no-store');
    try {
      await guard.authorize(request);
      if (request.is404) refuseUnknown(routes, request, reply);
      // Bull Board's plugin for files responds to a path with `..` with 500.
      if (isBoard(request) && request.url.includes('..')) throw new HttpError(404, 'there is nothing here');
      // Bull Board queries the queue directly, and would wait as long as the queue hangs.
      if (isBoard(request) && request.routeOptions.url?.startsWith(`${QUEUES_PATH}/api/`))
        await deps.dependencies.check('queue');
    } catch (error) {
      // Recovery: responds here. If rethrown, the matched plugin's error handler would send another message.
      return refuse(error, request, reply);
    }
  });
}

function refuseUnknown(routes: readonly Route[], { url }: FastifyRequest, reply: FastifyReply): never {
  const path = url.split('?', 1)[0] ?? '';
  const here = routes.filter((route) => route.path === path);
  // `/api/backfills/price` must match its own route, not the one with an id.
  const found = here.length > 0 ? here : routes.filter((route) => patternOf(route).test(path));
  const methods = found.map(({ method }) => method).join(', ');
  if (methods === '')
    throw new HttpError(404, 'there is nothing here', { next: 'see /api/openapi.json, or open the page' });
  reply.header('allow', methods);
  throw new HttpError(405, `this takes ${methods}`, { next: 'see /api/openapi.json' });
}

/**
 * Registered first, because it compresses what later plugins send. Responses with a CSRF token stay below the threshold, so that their
 * compressed length reveals nothing about it (BREACH).
 */
const addCompression = async (app: FastifyInstance): Promise<void> =>
  void (await app.register(compress, {
    threshold: 1024,
    encodings: ['br', 'gzip'],
    customTypes: /^(?:text\/(?!event-stream)|application\/(?:json|sql|yaml|x-ndjson|javascript)|image\/svg)/,
    brotliOptions: { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } },
    globalDecompression: false,
  }));

const addEvents = (app: FastifyInstance, events: ReturnType<typeof createEvents>): unknown =>
  app.get('/api/events', { config: { role: 'read' } }, (request, reply) => {
    events.checkRoom();
    const [lastId] = [request.headers['last-event-id']].flat();
    if (request.visitor) events.serve(reply.hijack().raw, request.visitor, lastId, SECURITY_HEADERS);
  });

function addProbes(app: FastifyInstance, { dependencies }: ControlDeps, metrics: Metrics): void {
  app.get('/healthz', OPEN, (_, reply) => reply.header('cache-control', 'no-store').send({ alive: true }));
  app.get('/readyz', OPEN, async (request, reply) => {
    const { ready, parts } = await dependencies.readiness();
    // Clients that are not signed in see which dependency is down, but not why.
    const shown = request.visitor ? parts : parts.map((part) => ({ ...part, message: null }));
    return reply
      .status(ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ ready, parts: shown });
  });
  app.get('/metrics', { config: { role: 'metrics' } }, async (_, reply) =>
    reply.type(METRICS_TYPE).send(await metrics.text()),
  );
}

async function addBoard(app: FastifyInstance, { queue }: ControlDeps, base: string): Promise<void> {
  await app.register(
    async (board) => {
      board.addHook('onSend', async (_, reply, payload) =>
        /html/.test(String(reply.getHeader('content-type'))) ? withinPolicy(payload) : payload,
      );
      await board.register(queueBoard(queue, base + QUEUES_PATH, `${base}/`));
    },
    { prefix: QUEUES_PATH },
  );
}

const patternOf = ({ path }: Route): RegExp => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`);

/** Only Bull Board's routes have no role. */
const isBoard = ({ is404, routeOptions }: FastifyRequest): boolean => !is404 && routeOptions.config?.role === undefined;

function capConnections(app: FastifyInstance, mostPerAddress: number): void {
  app.server.maxConnections = MOST_CONNECTIONS;
  const counts = new Map<string, number>();
  app.server.on('connection', (socket) => {
    const address = socket.remoteAddress ?? '';
    const count = (counts.get(address) ?? 0) + 1;
    counts.set(address, count);
    socket.once('close', () => {
      const left = (counts.get(address) ?? 1) - 1;
      if (left > 0) counts.set(address, left);
      else counts.delete(address);
    });
    if (count > mostPerAddress) socket.destroy();
  });
}

async function listen(app: FastifyInstance, { host, port }: HttpOptions): Promise<string> {
  try {
    return await app.listen({ host, port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EADDRINUSE' && code !== 'EACCES' && code !== 'EADDRNOTAVAIL' && code !== 'ENOTFOUND') throw error;
    throw new ConfigError(`the control room cannot listen on ${host}:${port} (${code})`, {
      next: 'choose another http.port or http.host, or stop the program that uses it',
    });
  }
}
