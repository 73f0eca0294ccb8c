import { afterAll, expect } from 'vitest';
import type { Json, JsonObject } from '../../src/sandbox/data/types.ts';
import {
  type SandboxOptions as PlainOptions,
  type Sandbox as PlainSandbox,
  startSandbox as startPlainSandbox,
} from '../../src/sandbox/server.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from './odd-service/service.ts';
import { parseTraits } from './odd-service/traits.ts';

const open: { close(): Promise<void> }[] = [];

/** Closes the sandboxes with the test file. */
afterAll(async () => {
  await Promise.all(open.splice(0).map((sandbox) => sandbox.close()));
});

/** Small and without a limit: the complete history fits one page of 1000. */
const small = <O extends SandboxOptions | PlainOptions>(options: O): O => ({
  requestsPerSecond: null,
  ...options,
  rows: { clicks: 900, leads: 300, sales: 200, ...options.rows },
});

export async function smallSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox(small(options));
  open.push(sandbox);
  return sandbox;
}

/** As users run it, for tests of the sandbox itself. */
export async function plainSandbox(options: PlainOptions = {}): Promise<PlainSandbox> {
  const sandbox = await startPlainSandbox(small(options));
  open.push(sandbox);
  return sandbox;
}

/** A small sandbox with traits in their command-line form. */
export const sandboxWith = (traits: string[], options: SandboxOptions = {}): Promise<Sandbox> =>
  smallSandbox({ ...options, traits: parseTraits(traits) });

export type Query = Record<string, string | number>;

export function ask(sandbox: PlainSandbox, query: Query = {}, init: RequestInit = {}): Promise<Response> {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) params.set(name, String(value));
  return fetch(`${sandbox.baseUrl}/events?${params}`, {
    redirect: 'manual',
    ...init,
    // Compression takes most of the time of a request, and only one test is about it.
    headers: { authorization: `Bearer ${sandbox.apiKey}`, 'accept-encoding': 'identity', ...init.headers },
  });
}

/** The rows of one page, by default of the complete history. */
export async function rows(sandbox: PlainSandbox, query: Query = {}): Promise<JsonObject[]> {
  const response = await ask(sandbox, { interval: 'all', limit: 1000, ...query });
  expect(response.status, await response.clone().text()).toBe(200);
  return (await response.json()) as JsonObject[];
}

/** Pages until an empty one, or up to a maximum. */
export async function allPages(sandbox: PlainSandbox, query: Query, most = 50): Promise<JsonObject[][]> {
  const pages: JsonObject[][] = [];
  for (let page = 1; page <= most; page++) {
    const found = await rows(sandbox, { ...query, page });
    if (found.length === 0) break;
    pages.push(found);
  }
  return pages;
}

/** A value inside a record: `at(row, 'click.id')`. */
export function at(record: JsonObject, path: string): Json | undefined {
  let value: Json | undefined = record;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    value = value[name];
  }
  return value;
}

export const idOf = (record: JsonObject): string => String(record.eventId ?? at(record, 'click.id'));
export const idsOf = (records: readonly JsonObject[]): string[] => records.map(idOf);
export const sorted = (ids: readonly string[]): string[] => [...ids].sort();

export async function errorOf(response: Response): Promise<{ code: string; message: string; doc_url: string }> {
  return ((await response.json()) as { error: { code: string; message: string; doc_url: string } }).error;
}
