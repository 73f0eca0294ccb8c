import { runWorkerApp } from '../../../src/app/worker.ts';
import type { Timings } from '../../../src/jobs/schedule.ts';
import { silentLog } from '../silent-log.ts';
import type { Backend } from '../workers.ts';
import { type Command, laterSync } from './commands.ts';
import type { World } from './world.ts';

/** Everything is looked at so often that nobody waits; a lock lives as long as a slow machine may need to renew it. */
const TIMINGS: Partial<Timings> = {
  tickMs: 100,
  watchMs: 300,
  recheckMs: 400,
  lockMs: 2000,
  busyMs: 100,
  maintainMs: 200,
};

/** Twelve workers at once on a machine that is busy with something else need most of a minute. */
const LONGEST_MS = 120_000;

/** One turn of a worker: what is due is taken from the queue, run, and given back to it. */
export const workerTurn = (backend: Backend): Command => ({
  ...laterSync,
  name: `a worker's turn with its queue in ${backend}`,
  world: { settings: { every: '1s' }, isQueueInRedis: backend === 'redis' },
  task: ({ config }) => ({ worker: { config, timings: TIMINGS } }),
  again: takeTurn,
});

/** Another worker comes, and stays until it has done a run. */
async function takeTurn(world: World): Promise<void> {
  world.syncedAt = Date.now();
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), LONGEST_MS);
  const states: string[] = [];
  const isDone = (): boolean => states.includes('done');
  await runWorkerApp({
    config: world.config,
    timings: TIMINGS,
    log: silentLog,
    signal: stop.signal,
    onRun({ state }) {
      states.push(state);
      if (isDone()) stop.abort();
    },
  });
  clearTimeout(timer);
  if (!isDone()) throw new Error(`no worker ever took the stream up again: ${states.join(', ') || 'no run at all'}`);
}
