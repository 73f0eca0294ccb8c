import { Readable } from 'node:stream';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { eitherSignal } from '../jobs/either-signal.ts';
import { ConfigError } from '../model/errors.ts';
import { type AccessOptions, createAccess, type Entry } from './access.ts';
import { API_SCHEMAS } from './api-schemas.ts';
import { encodingFor, isPackable, pack, packStream } from './compression.ts';
import type { ControlDeps } from './deps.ts';
import { answerOf, BUG } from './error-answer.ts';
import { createEvents } from './events.ts';
import { createLive, type LivePace } from './live.ts';
import { METRICS_TYPE, type Metrics } from './metrics.ts';
import { describeApi } from './openapi.ts';
import { readPageFiles } from './page-files.ts';
import { QUEUES_PATH, queueBoard, withinPolicy } from './queue-board.ts';
import { readReadiness, withoutMessages } from './readiness.ts';
import { type Ask, Plain, Refusal, type Route } from './route.ts';
import { routesOf } from './routes.ts';
import { SECURITY_HEADERS } from './security-headers.ts';
import { sessionRoutes } from './session-routes.ts';
import { createVerifications } from './verifications.ts';

export interface HttpOptions extends AccessOptions {
  port: number;
  /** For tests: how often the state is looked at. */
  livePace?: LivePace;
}

export interface HttpServer {
  /** Where it can be opened. */
  url: string;
  close(): Promise<void>;
}

/** The one home of fastify: the page, the API, health, metrics and the queues behind one door. */
export async function serveHttp(deps: ControlDeps, metrics: Metrics, options: HttpOptions): Promise<HttpServer> {
  const access = createAccess(options);
  const live = createLive(deps, options.livePace);
  const events = createEvents(live);
  const verifications = createVerifications(deps, () => live.changed('verifications'));
  const files = readPageFiles();
  const app = Fastify({
    bodyLimit: 65_536,
    // For sending a request, not for answering it: whoever is slower holds a connection for nothing.
    requestTimeout: 60_000,
    // Streams of events never end by themselves.
    forceCloseConnections: true,
    ajv: { customOptions: { removeAdditional: false, allErrors: false } },
  });
  const openPaths = new Set([...files.keys(), '/healthz', '/readyz', '/api/session']);
  const entries = new WeakMap<FastifyRequest, Entry>();

  const letIn = (request: FastifyRequest): void => {
    access.checkHost(visitOf(request));
    const path = pathOf(request);
    if (isUnder(path, '/api')) access.checkSite(visitOf(request));
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (!isRead && isUnder(path, QUEUES_PATH)) throw new Refusal(405, 'the view of the queues is for looking only');
    const entry = access.enter(visitOf(request));
    if (entry) entries.set(request, entry);
    if (!entry && !openPaths.has(path)) throw signInFirst();
    const isSignIn = path === '/api/session' && request.method === 'POST';
    if (isRead || isSignIn) return;
    if (!entry) throw signInFirst();
    access.checkChange(visitOf(request), entry);
  };
  const refuse = (error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const answer = answerOf(error) ?? BUG;
    const { status } = answer.error;
    if (answer === BUG) deps.log.error({ err: error, path: pathOf(request) }, 'a request met a bug');
    if (status === 401 && isUnder(pathOf(request), QUEUES_PATH)) return reply.redirect('/', 303);
    if (status === 401) reply.header('www-authenticate', 'Bearer');
    if (error instanceof Refusal && error.retryAfter !== undefined) reply.header('retry-after', error.retryAfter);
    return reply.status(status).header('cache-control', 'no-store').send(answer);
  };
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(SECURITY_HEADERS);
    try {
      letIn(request);
    } catch (error) {
      // Recovery: refused here and now. Thrown, it would be told by whoever owns the path, in words that are not ours.
      return refuse(error, request, reply);
    }
  });
  app.setErrorHandler(refuse);
  app.setNotFoundHandler(() => {
    throw new Refusal(404, 'there is nothing here', { next: 'see /api/openapi.json, or open /' });
  });

  const routes = [...routesOf(deps, verifications), ...sessionRoutes(access)];
  for (const route of routes) addRoute(app, route, deps.signal);
  app.get('/api/openapi.json', () => describeApi(routes, deps.version));

  for (const [path, file] of files) {
    app.get(path, async (request, reply) => {
      const cache = file.isForever ? 'public, max-age=31536000, immutable' : 'no-cache';
      reply.headers({ 'content-type': file.type, etag: file.etag, 'cache-control': cache });
      if (request.headers['if-none-match'] === file.etag) return reply.status(304).send();
      const encoding = encodingFor(request.headers['accept-encoding']);
      const packed = encoding && (await file.packed(encoding));
      return packed ? reply.header('content-encoding', encoding).send(packed) : reply.send(file.body);
    });
  }

  app.get('/healthz', (_, reply) => reply.header('cache-control', 'no-store').send({ alive: true }));
  app.get('/readyz', async (request, reply) => {
    const readiness = await readReadiness(deps);
    return reply
      .status(readiness.ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send(entries.has(request) ? readiness : withoutMessages(readiness));
  });
  app.get('/metrics', async (_, reply) => reply.type(METRICS_TYPE).send(await metrics.text()));
  app.get('/api/events', (request, reply) => {
    events.checkRoom();
    const lastId = request.headers['last-event-id'];
    events.serve(reply.hijack().raw, Array.isArray(lastId) ? lastId[0] : lastId);
  });
  await app.register(queueBoard(deps.queue), { prefix: QUEUES_PATH });
  app.addHook('onSend', async (request, reply, payload) => {
    const isBoard = isUnder(pathOf(request), QUEUES_PATH) && /html/.test(String(reply.getHeader('content-type')));
    return packed(request, reply, isBoard ? withinPolicy(payload) : payload);
  });

  const url = await listen(app, options);
  return {
    url,
    async close() {
      live.close();
      await app.close();
      await verifications.close();
    },
  };
}

/** What goes out, in the form that whoever asked likes best. */
async function packed(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
  if (!isPackable(String(reply.getHeader('content-type')))) return payload;
  reply.header('vary', 'accept-encoding');
  const encoding = encodingFor(request.headers['accept-encoding']);
  if (!encoding || reply.statusCode === 206 || reply.hasHeader('content-encoding')) return payload;
  const isText = typeof payload === 'string' || Buffer.isBuffer(payload);
  const tighter = isText
    ? await pack(payload, encoding)
    : payload instanceof Readable
      ? packStream(payload, encoding)
      : undefined;
  if (!tighter) return payload;
  reply.header('content-encoding', encoding).removeHeader('content-length');
  return tighter;
}

function addRoute(app: FastifyInstance, route: Route, ended: AbortSignal): void {
  const { method, path, query = {}, needs = [], body, media, status = 200 } = route;
  app.route({
    method,
    // A download costs what it costs, whether or not somebody takes it.
    exposeHeadRoute: !media,
    url: path.replace(/\{(\w+)\}/g, ':$1'),
    schema: {
      querystring: { type: 'object', properties: query, required: needs, additionalProperties: false },
      ...(body && { body: API_SCHEMAS[body] }),
    },
    handler: async (request, reply) => {
      const gone = new AbortController();
      reply.raw.once('close', () => gone.abort());
      const either = eitherSignal(gone.signal, ended);
      try {
        const answer = await route.handle(askOf(request, reply, either.signal));
        reply.status(status).header('cache-control', 'no-store');
        return await (answer instanceof Plain ? sendPlain(reply, answer) : reply.send(answer));
      } finally {
        either.letGo();
      }
    },
  });
}

function sendPlain(reply: FastifyReply, { type, body, extras: { headers = {}, trailers = {} } }: Plain): FastifyReply {
  for (const [name, value] of Object.entries(trailers)) reply.trailer(name, value);
  return reply.type(type).headers(headers).send(body);
}

const askOf = (request: FastifyRequest, reply: FastifyReply, signal: AbortSignal): Ask => ({
  params: { ...(request.query as Ask['params']), ...(request.params as Ask['params']) },
  list: (name) => [(request.query as Record<string, string | string[] | undefined>)[name] ?? []].flat(),
  body: request.body,
  visit: visitOf(request),
  setCookie: (cookie) => void reply.header('set-cookie', cookie),
  signal,
});

const visitOf = ({ headers, ip }: FastifyRequest) => ({ headers, address: ip });
const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? '';
const isUnder = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);
const signInFirst = (): Refusal =>
  new Refusal(401, 'sign in first', { next: 'open / and give the token, or send it as a bearer token' });

async function listen(app: FastifyInstance, { host, port }: HttpOptions): Promise<string> {
  try {
    return await app.listen({ host, port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'EADDRINUSE' && code !== 'EACCES' && code !== 'EADDRNOTAVAIL' && code !== 'ENOTFOUND') throw error;
    throw new ConfigError(`the control room cannot listen on ${host}:${port} (${code})`, {
      next: 'choose another http.port or http.host, or end what uses it',
    });
  }
}
