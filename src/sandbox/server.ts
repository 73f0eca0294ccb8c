import { setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Answer,
  createLimiter,
  errorAnswer,
  type Headers,
  type Limiter,
  MINUTE,
  PLAN_LIMITS,
  type Plan,
  rateHeaders,
  send,
} from './answer.ts';
import { CONTROL_PREFIX, control } from './control.ts';
import { codeOf, HttpError } from './params.ts';
import type { FaultRule } from './requests.ts';
import { createSandboxService, type SandboxService, type ServiceOptions } from './service.ts';

export interface SandboxOptions extends ServiceOptions {
  /** 0 takes a free port (default). */
  port?: number | undefined;
  apiKey?: string | undefined;
  plan?: Plan | undefined;
  /** Replaces the plan's limit; null: no limit. */
  requestsPerSecond?: number | null | undefined;
  /** Replaces the plan's limit on `GET /links`; null: no limit. */
  requestsPerMinute?: number | null | undefined;
  /** Counts the requests for events (default: in any second). */
  limiter?: Limiter | undefined;
}

export type Sandbox<S extends SandboxService = SandboxService> = Awaited<ReturnType<typeof serve<S>>>;

const HOST = '127.0.0.1';

export const startSandbox = (options: SandboxOptions = {}): Promise<Sandbox> =>
  serve(createSandboxService(options), options);

export async function serve<S extends SandboxService>(service: S, options: Omit<SandboxOptions, keyof ServiceOptions>) {
  const { apiKey = 'sandbox-key', plan = 'business', limiter = createLimiter() } = options;
  const granted = PLAN_LIMITS[plan];
  const { requestsPerSecond: perSecond = granted.perSecond, requestsPerMinute: perMinute = granted.perMinute } =
    options;
  const budgets: Record<string, Budget> = {
    '/events': { limit: perSecond, limiter, unit: 'second', list: service.list },
    '/links': { limit: perMinute, limiter: createLimiter(MINUTE), unit: 'minute', list: service.listLinks },
  };
  const closing = new AbortController();
  // Every delayed answer adds a listener, and many may be delayed at once.
  setMaxListeners(0, closing.signal);

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(`${service.baseUrl}${request.url}`);
    if (url.pathname.startsWith(CONTROL_PREFIX)) {
      const controlled = async (): Promise<Answer> => {
        checkKey(request, apiKey);
        return control(service, request, url.pathname);
      };
      const answer = await controlled().catch((error: unknown) => errorAnswer(httpErrorOf(error)));
      return send(request, response, answer, { date: service.now() });
    }
    const info = { method: request.method ?? '', path: url.pathname, query: Object.fromEntries(url.searchParams) };
    const entry = service.log.arrived(info);
    let headers: Headers = {};
    let fault: FaultRule | undefined;
    let answer: Answer;
    let rows = 0;
    try {
      checkKey(request, apiKey);
      const { limit, limiter, unit, list } = budgets[url.pathname] ?? notFound(url.pathname);
      checkAccess(request, url.pathname, plan);
      const decision = limit === null ? undefined : limiter.take(limit, Date.now());
      if (decision && limit !== null) headers = rateHeaders(decision, limit, service.now() - Date.now());
      fault = service.faults.take(info);
      if (fault?.delayMs) await sleep(fault.delayMs, undefined, { signal: closing.signal });
      if (fault?.hang) return;
      if (fault?.drop) {
        request.socket.destroy();
        return;
      }
      if (fault?.status === undefined && decision && !decision.allowed) {
        throw new HttpError('rate_limit_exceeded', `More than ${limit} requests per ${unit}.`);
      }
      if (fault && (fault.status !== undefined || fault.body !== undefined)) {
        answer = faultAnswer(fault, headers);
      } else {
        const page = list(url.searchParams);
        rows = page.rows;
        const type = { 'Content-Type': 'application/json' };
        answer = { status: 200, body: page.body, headers: { ...type, ...headers, ...fault?.headers } };
      }
    } catch (error) {
      if (closing.signal.aborted) return;
      answer = errorAnswer(httpErrorOf(error), headers);
    }
    service.log.answered(entry, answer.status, rows);
    await send(request, response, answer, { date: service.now(), cut: fault?.cut ?? false });
  }

  const server = createServer((request, response) => {
    // Recovery: only a connection that the client broke can still fail here.
    handle(request, response).catch(() => response.destroy());
  });
  // Idle connections stay open, for clients that space their requests.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, HOST, resolve);
  });
  const { port } = server.address() as AddressInfo;
  service.baseUrl = `http://${HOST}:${port}`;
  return {
    baseUrl: service.baseUrl,
    apiKey,
    port,
    service,
    /** Closes open connections too, promptly. */
    async close() {
      closing.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A bug in the sandbox is a 500 too, but its message says so. */
function httpErrorOf(error: unknown): { status: number; code: string; message: string } {
  if (error instanceof HttpError) return error;
  return { status: 500, code: 'internal_server_error', message: `the sandbox failed: ${String(error)}` };
}

function faultAnswer(fault: FaultRule, limits: Headers): Answer {
  const { status = 200, code = codeOf(status), message = `Injected fault: ${status}.` } = fault;
  const headers = { ...limits, ...fault.headers };
  if (fault.body === undefined) return errorAnswer({ status, code, message }, headers);
  return { status, body: fault.body, headers: { 'Content-Type': 'application/json', ...headers } };
}

function checkKey(request: IncomingMessage, apiKey: string): void {
  const given = request.headers.authorization;
  if (given === undefined) throw new HttpError('unauthorized', 'Missing Authorization header: Bearer <API_KEY>.');
  if (given !== `Bearer ${apiKey}`) throw new HttpError('unauthorized', 'Invalid API key or access token.');
}

interface Budget {
  limit: number | null;
  limiter: Limiter;
  unit: string;
  list: SandboxService['list'];
}

function notFound(path: string): never {
  throw new HttpError('not_found', `Nothing is found at ${path}.`);
}

/** Refuses a request with a valid key for its method or its plan. Only analytics needs a paid plan. */
function checkAccess(request: IncomingMessage, path: string, plan: Plan): void {
  if (request.method !== 'GET') throw new HttpError('bad_request', `${request.method} is not allowed here.`, 405);
  if (path === '/links' || plan !== 'free') return;
  throw new HttpError('forbidden', 'Analytics and events need a paid plan: upgrade to Business or higher.');
}
