import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe } from 'vitest';
import { type Config, parseConfig } from '../../src/config/index.ts';
import type { Timings } from '../../src/jobs/schedule.ts';
import type { StreamName } from '../../src/model/streams.ts';
import { startProcess } from './cli.ts';
import type { Sandbox } from './odd-service/service.ts';
import { freshRedis, hasRedis } from './redis.ts';

const SCRIPT = fileURLToPath(new URL('worker-child.ts', import.meta.url));

export type Backend = 'redis' | 'postgres';

/** Runs the tests on both backends of the queue; `%s` in the name stands for the backend. */
export function describeBackends(name: string, tests: (backend: Backend) => void): void {
  describe.skipIf(!hasRedis)(name.replace('%s', 'redis'), () => tests('redis'));
  describe(name.replace('%s', 'postgres'), () => tests('postgres'));
}

/** A new queue.url, or none for the queue in the state's database. */
export const queueUrl = async (backend: Backend): Promise<string | undefined> =>
  backend === 'redis' ? (await freshRedis()).url : undefined;

/** Short intervals, so that tests need not wait. */
export const FAST: Partial<Timings> = { tickMs: 250, watchMs: 500, recheckMs: 1500, lockMs: 2000, busyMs: 300 };

export interface WorkerConfig {
  stateUrl: string;
  queueUrl: string | undefined;
  /** By the source's name. */
  sandboxes: Readonly<Record<string, Pick<Sandbox, 'baseUrl' | 'apiKey'>>>;
  every?: string;
  streams?: readonly StreamName[];
  /** Further settings of every stream, and of the config. */
  stream?: Readonly<Record<string, unknown>>;
  rest?: Readonly<Record<string, unknown>>;
}

/** A config as a user would write it. */
export function workerConfig(options: WorkerConfig): Config {
  const { stateUrl, queueUrl, sandboxes, every = '1s', streams = ['clicks', 'leads', 'sales'], stream, rest } = options;
  const settings = Object.fromEntries(streams.map((name) => [name, { every, ...stream }]));
  const sources = Object.entries(sandboxes).map(([name, { baseUrl, apiKey }]) => [
    name,
    { baseUrl, apiKey, plan: 'enterprise', requestsPerSecond: 500, since: '30d', streams: settings },
  ]);
  const text = JSON.stringify({
    sources: Object.fromEntries(sources),
    state: { url: stateUrl },
    ...(queueUrl && { queue: { url: queueUrl } }),
    ...rest,
  });
  return parseConfig(text, 'test.yaml', {}).config;
}

export interface RunLine {
  source: string;
  stream: StreamName;
  state: string;
  new: number;
  fault?: string;
}

export type TestWorker = ReturnType<typeof startWorker>;

/** A worker in a separate process; it ends with the test file at the latest. */
export function startWorker(
  config: Config,
  timings: Partial<Timings> = FAST,
  env: Readonly<Record<string, string>> = {},
) {
  const args = ['--import', import.meta.resolve('tsx'), SCRIPT, JSON.stringify(config), JSON.stringify(timings)];
  const child = startProcess(process.execPath, args, '.', { PATH: process.env.PATH ?? '', ...env });
  let printed = '';
  child.child.stdout?.on('data', (chunk: string) => {
    printed += chunk;
  });
  return {
    ...child,
    ready: async () => void (await child.saw('"ready":true')),
    runs: (): RunLine[] =>
      printed
        .split('\n')
        .slice(0, -1)
        .filter((line) => line.includes('"state"'))
        .map((line) => JSON.parse(line) as RunLine),
  };
}

/** Polls until the condition holds; fails with its description. */
export async function until(what: string, isSo: () => Promise<boolean> | boolean, withinMs = 100_000): Promise<void> {
  for (const deadline = Date.now() + withinMs; !(await isSo()); await sleep(50)) {
    if (Date.now() > deadline) throw new Error(`it never came to this: ${what}`);
  }
}
