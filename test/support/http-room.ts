import { afterAll } from 'vitest';
import type { Config } from '../../src/config/index.ts';
import type { Log } from '../../src/model/log.ts';
import { startControlRoom } from './control-room.ts';

/** Of every room whose config names no other. */
export const ROOM_TOKEN = 'a-long-token-that-nobody-guesses';
/** For requests that come without a token. */
export const NOBODY = { authorization: '' };

/** A control room, and how programs ask it; it ends with the test file. */
export interface HttpRoom {
  url: string;
  /** With the token, unless the headers hold a cookie or an authorization of their own. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  json<T>(path: string, headers?: Record<string, string>): Promise<T>;
  send(method: 'POST' | 'DELETE', path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  close(): Promise<void>;
}

const open = new Set<HttpRoom>();
afterAll(async () => {
  for (const room of open) await room.close();
});

export async function startHttpRoom(config: Config, log?: Log): Promise<HttpRoom> {
  const token = config.http.token ?? ROOM_TOKEN;
  const onAnyPort = { ...config, http: { ...config.http, token, port: 0 } };
  const withToken = (headers: Record<string, string> = {}) =>
    'cookie' in headers || 'authorization' in headers ? headers : { ...headers, authorization: `Bearer ${token}` };
  const { url, close } = await startControlRoom(onAnyPort, { pollMs: 200, heartbeatMs: 500 }, undefined, log);
  const get: HttpRoom['get'] = (path, headers) =>
    fetch(url + path, { headers: withToken(headers), redirect: 'manual' });
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
      return fetch(url + path, {
        method,
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...withToken(headers) },
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
