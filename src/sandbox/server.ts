import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Answer,
  createLimiter,
  errorAnswer,
  type Headers,
  json,
  type LimiterForm,
  MINUTE,
  type Plan,
  planLimit,
  type RateDecision,
  rateHeaders,
  send,
  standardLimit,
} from './answer.ts';
import { CONTROL_PREFIX, control } from './control.ts';
import { codeOf, HttpError } from './params.ts';
import type { FaultRule } from './requests.ts';
import { createSandboxService, type SandboxService, type ServiceOptions } from './service.ts';
import type { Traits } from './traits.ts';

export interface SandboxOptions extends ServiceOptions {
  /** 0 takes a free port (default). */
  port?: number | undefined;
  apiKey?: string | undefined;
  plan?: Plan | undefined;
  /** Replaces the plan's limit; null: no limit. */
  requestsPerSecond?: number | null | undefined;
  /** Replaces the plan's limit on `GET /links`; null: no limit. */
  requestsPerMinute?: number | null | undefined;
  limiter?: LimiterForm | undefined;
}

export interface Sandbox {
  baseUrl: string;
  apiKey: string;
  port: number;
  service: SandboxService;
  /** Closes open connections too, promptly. */
  close(): Promise<void>;
}

const HOST = '127.0.0.1';

export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { apiKey = 'sandbox-key', plan = 'business', limiter: form = 'sliding' } = options;
  const service = createSandboxService(options);
  const limit = options.requestsPerSecond === undefined ? planLimit(plan) : options.requestsPerSecond;
  const perMinute = options.requestsPerMinute === undefined ? standardLimit(plan) : options.requestsPerMinute;
  const budgets: Record<string, Budget> = {
    '/events': { limit, limiter: createLimiter(), unit: 'second', list: service.list },
    '/links': { limit: perMinute, limiter: createLimiter(MINUTE), unit: 'minute', list: service.listLinks },
  };
  const closing = new AbortController();
  // Every delayed answer adds a listener, and many may be delayed at once.
  setMaxListeners(0, closing.signal);

  /** Budgets are kept in real time; the headers about them use the service's own clock. */
  const onServiceClock = (decision: RateDecision): RateDecision => ({
    ...decision,
    resetAt: decision.resetAt + service.now() - Date.now(),
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(`${service.baseUrl}${request.url}`);
    if (url.pathname.startsWith(CONTROL_PREFIX)) return handleControl(request, response, url.pathname);
    const info = { method: request.method ?? '', path: url.pathname, query: Object.fromEntries(url.searchParams) };
    const entry = service.log.arrived(info);
    let headers: Headers = {};
    let fault: FaultRule | undefined;
    let answer: Answer;
    let rows = 0;
    let date: number | undefined;
    try {
      checkKey(request, apiKey);
      const { traits } = service;
      if (traits.redirect) {
        service.log.answered(entry, 302);
        return await send(request, response, redirectTo(traits.redirect), { date: service.now() });
      }
      const { limit, limiter, unit, list } = budgets[url.pathname] ?? notFound(url.pathname);
      checkAccess(request, url.pathname, plan, traits);
      const decision = limit === null ? undefined : limiter.take(traits.limiter ?? form, limit, Date.now());
      if (decision && limit !== null) headers = rateHeaders(onServiceClock(decision), limit, traits, service.now());
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
        answer = faultAnswer(fault, service, headers);
      } else {
        const page = list(url.searchParams);
        if (page.delayMs > 0) await sleep(page.delayMs, undefined, { signal: closing.signal });
        rows = page.rows;
        date = page.date;
        const type = { 'Content-Type': 'application/json' };
        answer = { status: 200, body: page.body, headers: { ...type, ...headers, ...fault?.headers } };
        if (traits.etag) answer = tagged(answer, request.headers['if-none-match']);
      }
    } catch (error) {
      if (closing.signal.aborted) return;
      answer = errorAnswer(httpErrorOf(error), service.traits.errorBody, headers);
    }
    service.log.answered(entry, answer.status, rows);
    await send(request, response, answer, { date: date ?? service.now(), cut: fault?.cut ?? false });
  }

  async function handleControl(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    let answer: Answer;
    try {
      checkKey(request, apiKey);
      answer = await control(service, request, path);
    } catch (error) {
      answer = errorAnswer(httpErrorOf(error), undefined);
    }
    await send(request, response, answer, { date: service.now() });
  }

  const server = createServer((request, response) => {
    // The only thing that can still fail here is a connection that the client broke.
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
    async close() {
      closing.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A bug of the sandbox is a 500 too, but its message says so. */
function httpErrorOf(error: unknown): { status: number; code: string; message: string } {
  if (error instanceof HttpError) return error;
  return { status: 500, code: 'internal_server_error', message: `the sandbox failed: ${String(error)}` };
}

function faultAnswer(fault: FaultRule, service: SandboxService, limits: Headers): Answer {
  const { status = 200, code = codeOf(status), message = `Injected fault: ${status}.` } = fault;
  const headers = { ...limits, ...fault.headers };
  if (fault.body === undefined) return errorAnswer({ status, code, message }, service.traits.errorBody, headers);
  return { status, body: fault.body, headers: { 'Content-Type': 'application/json', ...headers } };
}

/** The answer with its ETag, or 304 without a body if the client has it already. */
function tagged(answer: Answer, known: string | undefined): Answer {
  const tag = `W/"${createHash('sha256').update(answer.body).digest('base64url')}"`;
  const headers = { ...answer.headers, ETag: tag };
  return known === tag ? { status: 304, body: '', headers } : { ...answer, headers };
}

const redirectTo = (location: string): Answer => json(302, {}, { Location: location });

const FORBIDDEN = {
  permission: 'Your API key lacks the permission analytics.read for this workspace.',
  plan: 'Analytics and events need a paid plan: upgrade to Business or higher.',
  usage: 'Your workspace has exceeded its monthly events usage. Upgrade, or wait for the next billing cycle.',
} as const;

function checkKey(request: IncomingMessage, apiKey: string): void {
  const given = request.headers.authorization;
  if (given === undefined) throw new HttpError('unauthorized', 'Missing Authorization header: Bearer <API_KEY>.');
  if (given !== `Bearer ${apiKey}`) throw new HttpError('unauthorized', 'Invalid API key or access token.');
}

/** The endpoints have budgets of their own. */
interface Budget {
  limit: number | null;
  limiter: ReturnType<typeof createLimiter>;
  unit: string;
  list: SandboxService['list'];
}

function notFound(path: string): never {
  throw new HttpError('not_found', `Nothing is found at ${path}.`);
}

/** Refuses a request with a valid key for its method, the plan or a missing permission. Only analytics needs a paid plan. */
function checkAccess(request: IncomingMessage, path: string, plan: Plan, { forbidden }: Traits): void {
  if (request.method !== 'GET') throw new HttpError('bad_request', `${request.method} is not allowed here.`, 405);
  if (path === '/links') return;
  if (plan === 'free') throw new HttpError('forbidden', FORBIDDEN.plan);
  if (forbidden) throw new HttpError('forbidden', FORBIDDEN[forbidden]);
}
