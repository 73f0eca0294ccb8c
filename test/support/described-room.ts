import { expect } from 'vitest';
import type { HttpRoom } from './http-room.ts';
import { type ApiDescription, mismatches } from './json-schema.ts';

/** A room whose every answer is compared with its own description. */
export interface DescribedRoom {
  description: ApiDescription;
  /** `GET /api/runs/{id}` for everything that was asked so far. */
  asked: ReadonlySet<string>;
  /** Asks, and checks the answer: against the schema of its status, or the one for everything that is refused. */
  ask<T>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<{ status: number; body: T }>;
  get<T>(path: string): Promise<T>;
}

export async function describedRoom(room: HttpRoom): Promise<DescribedRoom> {
  const description = await room.json<ApiDescription>('/api/openapi.json');
  const asked = new Set<string>();
  const ask: DescribedRoom['ask'] = async (method, path, body) => {
    const response = method === 'GET' ? await room.get(path) : await room.send('POST', path, body);
    const answer: unknown = await response.json();
    const bare = path.split('?', 1)[0] ?? '';
    // `/api/backfills/price` is a path of its own before it is an id.
    const fits = (known: string): boolean => new RegExp(`^${known.replace(/\{\w+\}/g, '[^/]+')}$`).test(bare);
    const pattern = description.paths[bare] ? bare : (Object.keys(description.paths).find(fits) ?? '');
    const responses = description.paths[pattern]?.[method.toLowerCase()]?.responses;
    const schema = (responses?.[response.status] ?? responses?.default)?.content?.['application/json'].schema;
    expect(schema, `${method} ${path} ${response.status} is described`).toBeDefined();
    if (schema) expect(mismatches(answer, schema, description), `${method} ${path} ${response.status}`).toEqual([]);
    asked.add(`${method} ${pattern}`);
    return { status: response.status, body: answer as never };
  };
  return { description, asked, ask, get: async (path) => (await ask('GET', path)).body as never };
}

/** What can be asked: `GET /api/runs`. */
export const routesIn = ({ paths }: ApiDescription): string[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
