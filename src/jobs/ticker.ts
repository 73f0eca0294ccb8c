import { setTimeout as sleep } from 'node:timers/promises';
import { finishBackfills } from '../cursor/backfills.ts';
import { removeOldHistory } from '../cursor/runs.ts';
import { readSchedules, unparkChanged, writeSchedules } from '../cursor/schedules.ts';
import { Fault } from '../model/errors.ts';
import { type AlertDeps, watch } from './alerts.ts';
import { enqueueWindows } from './backfills.ts';
import type { JobQueue } from './bull.ts';
import { syncJob } from './payloads.ts';
import { type Pace, type Plans, planKey } from './plan.ts';

const TIDY_MS = 3_600_000;

export interface TickerDeps extends AlertDeps {
  queue: JobQueue;
  pace: Pace;
  /** How long the history of runs is kept. */
  retentionMs: number;
}

/** Says in state and queue what the config wants: new streams are due at once, removed ones are gone, other keys are tried. */
export async function applyConfig({
  state,
  queue,
  plans,
}: Pick<TickerDeps, 'state' | 'queue' | 'plans'>): Promise<void> {
  const all = [...plans.values()].map(({ job: { source, stream }, schedule, fingerprint }) => ({
    source,
    stream,
    plan: schedule,
    fingerprint,
  }));
  await writeSchedules(state, all);
  await unparkChanged(state, all);
  await queue.schedule(schedulersOf(plans), { removeOthers: true });
}

/**
 * The net under the queue: what is due by the state and was forgotten by the queue is given to it again. Every worker does
 * this; a hint that is already there is not added twice.
 */
export async function runTicker(deps: TickerDeps, signal: AbortSignal): Promise<void> {
  const { pace } = deps;
  let watched = 0;
  let tidied = performance.now();
  do {
    await attempt(deps, 'giving due streams to the queue', () => enqueueDue(deps));
    await attempt(deps, 'giving windows to the queue', async () => {
      await finishBackfills(deps.state);
      await enqueueWindows(deps);
    });
    if (performance.now() - watched < pace.watchMs && watched > 0) continue;
    watched = performance.now();
    await attempt(deps, 'looking after the schedulers', () => keepSchedulers(deps));
    await attempt(deps, 'looking for trouble', () => watch(deps));
    if (performance.now() - tidied < TIDY_MS) continue;
    tidied = performance.now();
    await attempt(deps, 'removing old runs', () => removeOldHistory(deps.state, deps.retentionMs));
  } while (await sleep(pace.tickMs, true, { signal }).catch(() => false));
}

async function enqueueDue({ state, queue, plans }: TickerDeps): Promise<void> {
  for (const due of await readSchedules(state)) {
    if (due.nextRunAt > due.now) break;
    if (plans.has(planKey(due.source, due.stream))) await queue.enqueue('sync', syncJob(due));
  }
}

/** Only those that the state still has: another worker may have started with a config that lacks some of ours. */
async function keepSchedulers({ state, queue, plans }: TickerDeps): Promise<void> {
  const known = new Set((await readSchedules(state)).map(({ source, stream }) => planKey(source, stream)));
  const ours = new Map([...plans].filter(([key]) => known.has(key)));
  await queue.schedule(schedulersOf(ours), { removeOthers: false });
}

const schedulersOf = (plans: Plans) =>
  [...plans.values()].map(({ job, schedule }) => ({ job: syncJob(job), schedule }));

/** Recovery: a database or a queue that is away comes back, and the next tick does what this one could not. */
async function attempt({ log }: TickerDeps, what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    log.warn({ reason: error instanceof Error ? error.message : String(error) }, `${what} failed; trying again`);
    if (!(error instanceof Fault)) log.debug({ err: error }, 'this is where');
  }
}
