import { afterAll } from 'vitest';
import type { Config } from '../../src/config/index.ts';
import { startControlRoom } from './control-room.ts';

/** A control room, and how programs ask it; it ends with the test file. */
export interface HttpRoom {
  url: string;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  json<T>(path: string, headers?: Record<string, string>): Promise<T>;
  /** A change, with the CSRF token unless the headers say otherwise. */
  send(method: 'POST' | 'DELETE', path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  close(): Promise<void>;
}

const open = new Set<HttpRoom>();
afterAll(async () => {
  for (const room of open) await room.close();
});

export async function startHttpRoom(config: Config): Promise<HttpRoom> {
  const onAnyPort = { ...config, http: { ...config.http, port: 0 } };
  const { url, close } = await startControlRoom(onAnyPort, { lookMs: 200, beatMs: 500 });
  const get: HttpRoom['get'] = (path, headers = {}) => fetch(url + path, { headers, redirect: 'manual' });
  const json = async <T>(path: string, headers?: Record<string, string>): Promise<T> => {
    const response = await get(path, headers);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  const room: HttpRoom = {
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
      await close();
    },
  };
  open.add(room);
  return room;
}
