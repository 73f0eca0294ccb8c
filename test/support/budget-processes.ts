import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Lane } from '../../src/api/budget.ts';
import type { StreamName } from '../../src/model/streams.ts';
import type { LoggedRequest } from '../../src/sandbox/requests.ts';

export interface ChildOptions {
  databaseUrl: string;
  baseUrl: string;
  apiKey: string;
  lanes: readonly Lane[];
  requestsPerSecond: number;
  /** Requests of each lane that wait or run at a time. */
  parallel?: number;
}

const SCRIPT = fileURLToPath(new URL('./budget-child.ts', import.meta.url));

/** The stream that identifies a lane to the server. */
export const STREAM_OF: Readonly<Record<Lane, StreamName>> = { fresh: 'clicks', repair: 'leads', backfill: 'sales' };

/** Starts processes that use all of the available budget. Resolves when each is about to send. */
export async function startProcesses(all: readonly ChildOptions[]): Promise<ChildProcess[]> {
  return Promise.all(
    all.map(async (options) => {
      const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), SCRIPT, JSON.stringify(options)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await once(child.stdout, 'data');
      return child;
    }),
  );
}

export async function kill(children: readonly ChildProcess[]): Promise<void> {
  await Promise.all(
    children.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }),
  );
}

/** Accepted requests, as a share of the budget between the first and the last of them. */
export function budgetUse(log: readonly LoggedRequest[], perSecond: number): number {
  const served = log.filter(({ status }) => status === 200);
  const [first, last] = [served[0]?.at ?? 0, served.at(-1)?.at ?? 0];
  return (served.length - 1) / ((perSecond * (last - first)) / 1000);
}

export const countOf = (log: readonly LoggedRequest[], status: number): number =>
  log.filter((request) => request.status === status).length;

export const laneShare = (log: readonly LoggedRequest[], lane: Lane): number =>
  log.filter(({ query }) => query.event === STREAM_OF[lane]).length / log.length;
