import { setTimeout as sleep } from 'node:timers/promises';
import { finishBackfills } from '../cursor/backfills.ts';
import { removeOldHistory } from '../cursor/runs.ts';
import { readSchedules, unparkChanged, writeSchedules } from '../cursor/schedules.ts';
import { HOUR_MS } from '../model/window.ts';
import type { Sink } from '../sinks/sink.ts';
import { maintainSink } from '../sync/sync-stream.ts';
import { type AlertDeps, sendAlerts } from './alerts.ts';
import { enqueueWindows } from './backfills.ts';
import type { JobQueue } from './bull.ts';
import { recordWorkerTrouble } from './incidents.ts';
import { syncJob } from './payloads.ts';
import { type ScheduledStreams, streamKey, type Timings } from './schedule.ts';
import type { Upkeep } from './watchdog.ts';

interface TickerDeps extends AlertDeps {
  sinks: readonly Sink[];
  signal: AbortSignal;
  queue: JobQueue;
  timings: Timings;
  upkeep: Upkeep;
  retentionMs: number;
}

const SCHEDULERS = 'looking after the schedulers';

/** Updates state and queue to the config: new streams are due at once, removed ones are deleted, changed keys are unparked. */
export async function applyConfig(deps: Pick<TickerDeps, 'state' | 'queue' | 'scheduled' | 'upkeep'>): Promise<void> {
  const { state, queue, scheduled, upkeep } = deps;
  const all = [...scheduled.values()].map(({ job: { source, stream }, schedule, fingerprint }) => ({
    source,
    stream,
    plan: schedule,
    fingerprint,
  }));
  await writeSchedules(state, all);
  await unparkChanged(state, all);
  await recordWorkerTrouble(state, undefined);
  // The periodic tasks do this too, so a queue that is briefly unavailable does not keep a worker from starting.
  await upkeep(SCHEDULERS, () => queue.schedule(schedulersOf(scheduled), { removeOthers: true }));
}

/** Every worker runs all tasks; each is idempotent across workers. The loops are independent: none waits for another. */
export async function runPeriodicTasks(deps: TickerDeps): Promise<void> {
  const { state, log, signal, sinks, timings, upkeep } = deps;
  const isTimeAgain = (everyMs: number): Promise<boolean> => sleep(everyMs, true, { signal }).catch(() => false);
  const loop = async (everyMs: number, work: () => Promise<void>, isAtOnce = false): Promise<void> => {
    if (isAtOnce) await work();
    while (await isTimeAgain(everyMs)) await work();
  };
  // The safety net for the queue: jobs that are due by the state and that the queue has lost are enqueued again.
  const tick = async (): Promise<void> => {
    await upkeep('enqueueing due streams', () => enqueueDue(deps));
    await upkeep('enqueueing backfill windows', () => finishBackfills(state).then(() => enqueueWindows(deps)));
  };
  const watch = async (): Promise<void> => {
    await upkeep(SCHEDULERS, () => restoreSchedulers(deps));
    await upkeep('checking for alerts', () => sendAlerts(deps));
  };
  const maintain = async (): Promise<void> => {
    for (const sink of sinks)
      await upkeep(`the maintenance of sink "${sink.name}"`, (until) => maintainSink(sink, log, until));
  };
  await Promise.all([
    loop(timings.tickMs, tick, true),
    loop(timings.watchMs, watch, true),
    loop(HOUR_MS, () => upkeep('removing old runs', () => removeOldHistory(state, deps.retentionMs))),
    loop(timings.maintainMs, maintain),
  ]);
}

async function enqueueDue({ state, queue, scheduled }: TickerDeps): Promise<void> {
  for (const due of await readSchedules(state)) {
    if (due.nextRunAt > due.now) break;
    if (scheduled.has(streamKey(due.source, due.stream))) await queue.enqueue('sync', syncJob(due));
  }
}

/** Only for streams that are still in the state: another worker may have started with a config that removed some of ours. */
async function restoreSchedulers({ state, queue, scheduled }: TickerDeps): Promise<void> {
  const known = new Set((await readSchedules(state)).map(({ source, stream }) => streamKey(source, stream)));
  const ours = new Map([...scheduled].filter(([key]) => known.has(key)));
  await queue.schedule(schedulersOf(ours), { removeOthers: false });
}

const schedulersOf = (scheduled: ScheduledStreams) =>
  [...scheduled.values()].map(({ job, schedule }) => ({ job: syncJob(job), schedule }));
