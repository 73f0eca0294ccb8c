import { afterAll, expect } from 'vitest';
import { z } from 'zod';
import { runStartApp, type StartOptions } from '../../src/app/start.ts';
import type { Config } from '../../src/config/index.ts';
import type { LiveEvent, Overview } from '../../src/http/api-types.ts';
import type { Log } from '../../src/model/log.ts';
import { silentLog } from './silent-log.ts';
import { FAST, until } from './workers.ts';

/** A control room and its HTTP clients. */

/** The token of rooms whose config sets none. */
export const ROOM_TOKEN = 'a-long-token-that-nobody-guesses';

/** For requests without a token. */
export const NOBODY = { authorization: '' };

type Headers = Record<string, string>;

/** `tributary start` in this process, on a free port, with short intervals. */
export async function startControlRoom(
  config: Config,
  { log = silentLog, ...more }: Partial<Pick<StartOptions, 'log' | 'liveTimings' | 'tokenFolder'>> = {},
) {
  const stop = new AbortController();
  const liveTimings = { pollMs: 300, heartbeatMs: 5000 };
  const options = { config, log, signal: stop.signal, timings: FAST, liveTimings, ...more };
  let done: Promise<void> = Promise.resolve();
  const { url, link } = await new Promise<{ url: string; link: string | undefined }>((listening, failed) => {
    done = runStartApp({ ...options, onListening: (at, room) => listening({ url: at, link: room.link }) });
    done.catch(failed);
  });
  return {
    url,
    /** With the generated token, if the config sets none. */
    link,
    /** Stops the worker and its server, as Ctrl-C does. */
    async close() {
      stop.abort();
      await done;
    },
  };
}

export type HttpRoom = Awaited<ReturnType<typeof startHttpRoom>>;

const open = new Set<() => Promise<void>>();
afterAll(async () => {
  for (const close of open) await close();
});

/** Closed with the test file. Requests have the token, unless their headers have a cookie or an authorization. */
export async function startHttpRoom(config: Config, log?: Log) {
  const token = config.http.token ?? ROOM_TOKEN;
  const onAnyPort = { ...config, http: { ...config.http, token, port: 0 } };
  const liveTimings = { pollMs: 200, heartbeatMs: 500 };
  const { url, close } = await startControlRoom(onAnyPort, { liveTimings, ...(log && { log }) });
  open.add(close);
  const withToken = (headers: Headers = {}): Headers =>
    'cookie' in headers || 'authorization' in headers ? headers : { ...headers, authorization: `Bearer ${token}` };
  const get = (path: string, headers?: Headers): Promise<Response> =>
    fetch(url + path, { headers: withToken(headers), redirect: 'manual' });
  return {
    url,
    get,
    async json<T>(path: string, headers?: Headers): Promise<T> {
      const response = await get(path, headers);
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      return (await response.json()) as T;
    },
    send: (method: 'POST' | 'DELETE', path: string, body?: unknown, headers?: Headers): Promise<Response> =>
      fetch(url + path, {
        method,
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...withToken(headers) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    async close() {
      open.delete(close);
      await close();
    },
  };
}

/** The same, after every stream was synced. */
export async function syncedRoom(config: Config): Promise<HttpRoom> {
  const room = await startHttpRoom(config);
  await until('every stream is synced', async () => {
    const { streams } = await room.json<Overview>('/api/overview');
    return streams.every(({ lastRun }) => lastRun?.state === 'done');
  });
  return room;
}

/** The parts of the API description that tests use. */
export interface ApiDescription {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object> };
}

interface Operation {
  operationId: string;
  parameters?: Array<{ name: string; in: 'path' | 'query'; required: boolean; schema: { enum?: readonly unknown[] } }>;
  requestBody?: object;
  responses: Record<string, { content?: { 'application/json': { schema: object } } }>;
}

/** All routes: `GET /api/runs`. */
export const routesIn = ({ paths }: ApiDescription): string[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );

export type DescribedRoom = Awaited<ReturnType<typeof describedRoom>>;

/** A room whose every answer is validated against its API description: by the schema of its status, or that of all errors. */
export async function describedRoom(room: HttpRoom) {
  const description = await room.json<ApiDescription>('/api/openapi.json');
  const asked = new Set<string>();
  const ask = async <T>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<{ status: number; body: T }> => {
    const response = method === 'GET' ? await room.get(path) : await room.send('POST', path, body);
    const answer: unknown = await response.json();
    const bare = path.split('?', 1)[0] ?? '';
    // `/api/backfills/price` takes precedence over an id.
    const fits = (known: string): boolean => new RegExp(`^${known.replace(/\{\w+\}/g, '[^/]+')}$`).test(bare);
    const pattern = description.paths[bare] ? bare : (Object.keys(description.paths).find(fits) ?? '');
    const responses = description.paths[pattern]?.[method.toLowerCase()]?.responses;
    const schema = (responses?.[response.status] ?? responses?.default)?.content?.['application/json'].schema;
    expect(schema, `${method} ${path} ${response.status} is described`).toBeDefined();
    if (schema) expect(mismatches(answer, schema, description), `${method} ${path} ${response.status}`).toEqual([]);
    asked.add(`${method} ${pattern}`);
    return { status: response.status, body: answer as T };
  };
  return {
    description,
    /** Requested routes, such as `GET /api/runs/{id}`. */
    asked,
    ask,
    get: async <T>(path: string): Promise<T> => (await ask<T>('GET', path)).body,
  };
}

/** Where a value violates a schema of the description, by place. */
function mismatches(value: unknown, schema: object, { components }: ApiDescription): string[] {
  const named = JSON.stringify({ ...schema, $defs: components.schemas }).replaceAll(
    '#/components/schemas/',
    '#/$defs/',
  );
  const { error } = z.fromJSONSchema(JSON.parse(named)).safeParse(value);
  return error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];
}

/** An EventSource that also records ids and comments. */
export async function listenTo(url: string, lastId?: string, who: Headers = { authorization: `Bearer ${ROOM_TOKEN}` }) {
  const stop = new AbortController();
  const headers = { accept: 'text/event-stream', ...who, ...(lastId !== undefined && { 'last-event-id': lastId }) };
  const response = await fetch(`${url}/api/events`, { headers, signal: stop.signal });
  if (response.headers.get('content-type') !== 'text/event-stream') throw new Error(await response.text());
  const events: Array<LiveEvent & { id: string }> = [];
  let beats = 0;
  const read = async (): Promise<void> => {
    let rest = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (rest + chunk).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
        if (block.startsWith(':')) beats += 1;
        const [event, data, id] = [field('event'), field('data'), field('id')];
        if (event && data && id) events.push({ event, data: JSON.parse(data), id } as (typeof events)[number]);
      }
    }
  };
  return {
    events,
    /** Keep-alive comments. */
    beats: () => beats,
    /** Resolves when the server ends the stream. */
    ended: read().catch(() => {}),
    close: () => stop.abort(),
  };
}
