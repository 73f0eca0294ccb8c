import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigError } from '../model/errors.ts';
import { parseJson } from '../model/json.ts';
import { STREAM_NAMES } from '../model/streams.ts';
import {
  type Answer,
  createLimiter,
  errorAnswer,
  type Headers,
  json,
  type LimiterForm,
  type Plan,
  planLimit,
  type RateDecision,
  rateHeaders,
  send,
} from './answer.ts';
import type { JsonObject } from './data/types.ts';
import { codeOf, envelope, HttpError } from './params.ts';
import { FAULT_KEYS, type FaultRule } from './requests.ts';
import { createSandboxService, type SandboxService, type ServiceOptions } from './service.ts';
import { parseTrait, type Traits } from './traits.ts';

export interface SandboxOptions extends ServiceOptions {
  /** 0 takes a free port (default). */
  port?: number | undefined;
  apiKey?: string | undefined;
  plan?: Plan | undefined;
  /** Replaces the plan's limit; null: no limit. */
  requestsPerSecond?: number | null | undefined;
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
  const limiter = createLimiter();
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
        throw new HttpError('rate_limit_exceeded', `More than ${limit} requests per second.`);
      }
      if (fault && (fault.status !== undefined || fault.body !== undefined)) {
        answer = faultAnswer(fault, service, headers);
      } else {
        const page = service.list(url.searchParams);
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

/** Refuses a request with a valid key for its path, its method, the plan or a missing permission. */
function checkAccess(request: IncomingMessage, path: string, plan: Plan, { forbidden }: Traits): void {
  if (path !== '/events') throw new HttpError('not_found', `Nothing is found at ${path}.`);
  if (request.method !== 'GET') throw new HttpError('bad_request', `${request.method} is not allowed here.`, 405);
  if (plan === 'free') throw new HttpError('forbidden', FORBIDDEN.plan);
  if (forbidden) throw new HttpError('forbidden', FORBIDDEN[forbidden]);
}

const CONTROL_PREFIX = '/_sandbox/';
const MOST_BYTES = 64 * 1024 * 1024;

/**
 * Controls for users in another process:
 *   POST traits {"widen":"day","ties":null}          null removes a trait, the others stay
 *   POST faults [{"status":500,"times":3,"match":{"event":"leads"}}]
 *   POST events {"stream":"leads","records":[…]} or {"stream":"clicks","generate":100,"from":ms,"to":ms}
 *   GET  stats
 *   GET  requests                                    what was asked for, and how many rows were shown; oldest first
 *   GET  truth                                       id and epoch milliseconds of every visible event, by stream
 */
async function control(service: SandboxService, request: IncomingMessage, path: string): Promise<Answer> {
  const call = `${request.method} ${path.slice(CONTROL_PREFIX.length)}`;
  try {
    switch (call) {
      case 'GET stats':
        return json(200, service.stats());
      case 'GET requests':
        return json(200, service.requests);
      case 'GET truth':
        return json(200, Object.fromEntries(STREAM_NAMES.map((stream) => [stream, service.truth(stream)])));
      case 'GET traits':
        return json(200, service.traits);
      case 'POST traits':
        service.traits = changedTraits(service.traits, object(await bodyOf(request)));
        return json(200, service.traits);
      case 'POST faults':
        service.faults.add(...readFaults(await bodyOf(request)));
        return json(200, { pendingFaults: service.faults.pending });
      case 'POST events':
        return json(200, takeEvents(service, object(await bodyOf(request))));
      default:
        return json(404, envelope('not_found', `the sandbox has no control ${call}`));
    }
  } catch (error) {
    // A mistake in a control request is answered; anything else is a bug and is thrown.
    if (error instanceof ConfigError) return json(400, envelope('bad_request', error.describe()));
    if (error instanceof HttpError) return json(error.status, envelope(error.code, error.message));
    throw error;
  }
}

function changedTraits(current: Traits, changes: JsonObject): Traits {
  const next = { ...current };
  for (const [name, value] of Object.entries(changes)) {
    parseTrait(value === null || value === false ? `${name}=` : `${name}=${String(value)}`, next);
  }
  return next;
}

function readFaults(value: unknown): FaultRule[] {
  const list = Array.isArray(value) ? value : [value];
  return list.map((plan) => {
    const odd = Object.keys(object(plan)).find((name) => !FAULT_KEYS.some((known) => known === name));
    if (odd !== undefined)
      throw new HttpError('bad_request', `a fault has no "${odd}"; it has ${FAULT_KEYS.join(', ')}`);
    return plan as FaultRule;
  });
}

function takeEvents(service: SandboxService, body: JsonObject): object {
  const stream = STREAM_NAMES.find((name) => name === body.stream);
  if (!stream) throw new HttpError('bad_request', `stream must be one of ${STREAM_NAMES.join(', ')}`);
  const records = Array.isArray(body.records) ? body.records : [];
  for (const record of records) service.add(stream, object(record));
  const { generate = 0, from = service.now() - 1, to = service.now() - 1 } = body;
  const ids = service.arrive(stream, Number(generate), { from: Number(from), to: Number(to) });
  return { added: records.length, generated: ids };
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > MOST_BYTES) throw new HttpError('bad_request', 'the body is too large');
    chunks.push(chunk as Buffer);
  }
  try {
    return parseJson(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new HttpError('bad_request', 'the body is no JSON');
  }
}

function object(value: unknown): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new HttpError('bad_request', 'expected a JSON object');
}
