import { afterAll } from 'vitest';
import { runStartApp } from '../../src/app-start.ts';
import type { Config } from '../../src/config-schema.ts';
import type { Log } from '../../src/model/log.ts';
import { silentLog } from './silent-log.ts';
import { FAST } from './workers.ts';

/** `tributary start` inside the test's own process; it ends with the file. */
export interface ControlRoom {
  url: string;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  json<T>(path: string, headers?: Record<string, string>): Promise<T>;
  /** A change, with the CSRF token unless the headers say otherwise. */
  send(method: 'POST' | 'DELETE', path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  close(): Promise<void>;
}

const open = new Set<ControlRoom>();
afterAll(async () => {
  for (const room of open) await room.close();
});

export async function startControlRoom(config: Config, log: Log = silentLog): Promise<ControlRoom> {
  const stop = new AbortController();
  let done: Promise<void> = Promise.resolve();
  const url = await new Promise<string>((resolve, reject) => {
    done = runStartApp({
      config: { ...config, http: { ...config.http, port: 0 } },
      log,
      signal: stop.signal,
      pace: FAST,
      livePace: { lookMs: 200, beatMs: 500 },
      onListening: resolve,
    });
    done.catch(reject);
  });
  const get: ControlRoom['get'] = (path, headers = {}) => fetch(url + path, { headers, redirect: 'manual' });
  const json = async <T>(path: string, headers?: Record<string, string>): Promise<T> => {
    const response = await get(path, headers);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  const room: ControlRoom = {
    url,
    get,
    json,
    async send(method, path, body, headers) {
      const usual = headers ?? { 'x-csrf-token': (await json<{ csrf: string }>('/api/session')).csrf };
      return fetch(url + path, {
        method,
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...usual },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    },
    async close() {
      open.delete(room);
      stop.abort();
      await done;
    },
  };
  open.add(room);
  return room;
}
