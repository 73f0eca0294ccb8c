import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { startStock, stockPostgres } from '../support/servers.ts';
import { silentLog } from '../support/silent-log.ts';
import { lastLines, Missing, type Ran, run, SLOWEST_MS, stop } from './part.ts';

/** The built binary before a played service, as an operator has it: a folder, a config, commands. */
export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
export const STREAMS = ['clicks', 'leads', 'sales'] as const;
export type StreamName = (typeof STREAMS)[number];
export type Truth = Record<StreamName, Array<{ id: string; at: number }>>;

export interface Service {
  baseUrl: string;
  apiKey: string;
  truth(): Promise<Truth>;
  arrive(stream: StreamName, number: number, span?: { from: number; to: number }): Promise<void>;
  /** From now on every request is answered with this status. */
  fail(status: number): Promise<void>;
  close(): Promise<unknown>;
}

export async function startService(...args: string[]): Promise<Service> {
  const child = spawn(process.execPath, [MAIN, 'sandbox', '--port', '0', '--json', ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const { baseUrl, apiKey } = JSON.parse(line) as { baseUrl: string; apiKey: string };
  const ask = async (path: string, body?: unknown): Promise<unknown> => {
    const headers = { authorization: `Bearer ${apiKey}` };
    const init = body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) };
    const answer = await fetch(`${baseUrl}/_sandbox/${path}`, init);
    if (!answer.ok) throw new Error(`/_sandbox/${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  return {
    baseUrl,
    apiKey,
    truth: async () => (await ask('truth')) as Truth,
    arrive: async (stream, generate, span = { from: Date.now() - 1, to: Date.now() - 1 }) =>
      void (await ask('events', { stream, generate, ...span })),
    fail: async (status) => void (await ask('faults', [{ status, times: 1_000_000 }])),
    close: () => stop(child),
  };
}

/** A folder of its own, with a config and the environment that it asks for. */
export interface Desk {
  dir: string;
  /** Runs a command to its end. */
  tributary(...args: string[]): Promise<Ran>;
  /** The same for what has to end with 0. */
  done(...args: string[]): Promise<string>;
  start(...args: string[]): ChildProcess;
  close(): Promise<void>;
}

export async function openDesk(config: string, env: Record<string, string> = {}): Promise<Desk> {
  const dir = await mkdtemp(join(tmpdir(), 'tributary-interop-'));
  await mkdir(join(dir, 'config'));
  await writeFile(join(dir, 'config', 'tributary.yaml'), config);
  const options = { cwd: dir, env: { PATH: process.env.PATH ?? '', HOME: dir, NO_COLOR: '1', ...env } };
  const tributary = (...args: string[]): Promise<Ran> => run(process.execPath, [MAIN, ...args], options);
  return {
    dir,
    tributary,
    async done(...args) {
      const ran = await tributary(...args);
      if (ran.code !== 0) throw new Error(`tributary ${args.join(' ')} ended with ${ran.code}:\n${lastLines(ran)}`);
      return ran.out;
    },
    start: (...args) => spawn(process.execPath, [MAIN, ...args], { ...options, stdio: 'ignore', timeout: SLOWEST_MS }),
    close: () => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }),
  };
}

/** The source of every part; `since` is older than what the service has. */
export const sourceOf = ({ baseUrl, apiKey }: Pick<Service, 'baseUrl' | 'apiKey'>, since = '40d'): string => `sources:
  main:
    baseUrl: ${baseUrl}
    apiKey: ${apiKey}
    plan: enterprise
    requestsPerSecond: 200
    since: ${since}
    streams: { clicks: { every: 5m }, leads: { every: 1m }, sales: { every: 1m } }
`;

/** A Postgres of the package's own, for state where the state is not what is tried. */
export async function startState(): Promise<{ url: string; close(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'tributary-interop-state-'));
  const server = await openEmbedded({ dir, log: silentLog, command: 'interop' });
  return {
    url: server.url,
    async close() {
      await server.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** One on a port: the programs of others do not reach the embedded server, which has only a socket. */
export function startStateOnPort(): Promise<{ url: string; close(): Promise<void> }> {
  const bin = [18, 17, 16, 15].map(stockPostgres).find((found) => found !== undefined);
  if (bin === undefined) throw new Missing('no Postgres server in /usr/lib/postgresql');
  return startStock(bin);
}

export async function withDatabase<T>(url: string, work: (db: Database) => Promise<T>): Promise<T> {
  const db = connect({ url, max: 1 });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

/** What the tables hold, by stream; nothing while they are not there yet. */
export async function idsInTables(url: string): Promise<Map<StreamName, string[]>> {
  const idsOf = (stream: StreamName): Promise<string[]> =>
    withDatabase(url, (db) => db.query<{ event_id: string }>({ text: `select event_id from attribution.${stream}` }))
      .then((rows) => rows.map((row) => row.event_id))
      .catch(() => []);
  return new Map(await Promise.all(STREAMS.map(async (stream) => [stream, await idsOf(stream)] as const)));
}

/** Asks until it holds, or says what did not come. */
export async function until(what: string, holds: () => Promise<boolean>, seconds = 60): Promise<void> {
  // Seldom where it takes long: to look may be work for the server that is waited for.
  const everyMs = seconds > 300 ? 5000 : 100;
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(everyMs)) if (await holds()) return;
  throw new Error(`${what} did not come within ${seconds} s`);
}

/** What differs between what is held and what the service knows: nothing lost, nothing double, nothing of anybody else. */
export function differences(
  held: ReadonlyMap<StreamName, readonly string[]>,
  truth: Truth,
  gone: readonly string[] = [],
): string[] {
  return STREAMS.flatMap((stream) => {
    const wanted = new Set(truth[stream].map(({ id }) => id).filter((id) => !gone.includes(id)));
    const ids = held.get(stream) ?? [];
    const there = new Set(ids);
    const [lost, extra, doubled] = [
      [...wanted].filter((id) => !there.has(id)).length,
      [...there].filter((id) => !wanted.has(id)).length,
      ids.length - there.size,
    ];
    return [
      lost && `${stream}: ${lost} lost`,
      extra && `${stream}: ${extra} too many`,
      doubled && `${stream}: ${doubled} double`,
    ].filter((one) => typeof one === 'string');
  });
}

export const mustBeNone = (faults: readonly string[], what: string): void => {
  if (faults.length > 0) throw new Error(`${what}: ${faults.join('; ')}`);
};
