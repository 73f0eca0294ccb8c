import { setTimeout as sleep } from 'node:timers/promises';
import { finishBackfills } from '../cursor/backfills.ts';
import { removeOldHistory } from '../cursor/runs.ts';
import { readSchedules, unparkChanged, writeSchedules } from '../cursor/schedules.ts';
import { HOUR_MS } from '../model/window.ts';
import type { Sink } from '../sinks/sink.ts';
import { maintainSink } from '../sync/sync-stream.ts';
import { type AlertDeps, watch } from './alerts.ts';
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

/** The first time when a worker starts. */
const SCHEDULERS = 'looking after the schedulers';

/** Brings state and queue in line with the config: new streams are due at once, removed ones go, and a changed key is tried again. */
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
  // The ticker looks after them, too: a queue that is away for a moment keeps no worker from starting.
  await upkeep(SCHEDULERS, () => queue.schedule(schedulersOf(scheduled), { removeOthers: true }));
}

/** Every worker does all of it; what another has done is found done. A lane waits for no other lane. */
export async function runLanes(deps: TickerDeps): Promise<void> {
  const { state, log, signal, sinks, timings, upkeep } = deps;
  const again = (everyMs: number): Promise<boolean> => sleep(everyMs, true, { signal }).catch(() => false);
  const lane = async (everyMs: number, work: () => Promise<void>, isAtOnce = false): Promise<void> => {
    if (isAtOnce) await work();
    while (await again(everyMs)) await work();
  };
  // The safety net under the queue: what is due by the state and was lost by the queue is given to it again.
  const tick = async (): Promise<void> => {
    await upkeep('giving due streams to the queue', () => enqueueDue(deps));
    await upkeep('giving windows to the queue', () => finishBackfills(state).then(() => enqueueWindows(deps)));
  };
  const look = async (): Promise<void> => {
    await upkeep(SCHEDULERS, () => keepSchedulers(deps));
    await upkeep('looking for trouble', () => watch(deps));
  };
  const maintain = async (): Promise<void> => {
    for (const sink of sinks)
      await upkeep(`the maintenance of sink "${sink.name}"`, (until) => maintainSink(sink, log, until));
  };
  await Promise.all([
    lane(timings.tickMs, tick, true),
    lane(timings.watchMs, look, true),
    lane(HOUR_MS, () => upkeep('removing old runs', () => removeOldHistory(state, deps.retentionMs))),
    lane(timings.maintainMs, maintain),
  ]);
}

async function enqueueDue({ state, queue, scheduled }: TickerDeps): Promise<void> {
  for (const due of await readSchedules(state)) {
    if (due.nextRunAt > due.now) break;
    if (scheduled.has(streamKey(due.source, due.stream))) await queue.enqueue('sync', syncJob(due));
  }
}

/** Only those that the state still has: another worker may have started with a config that lacks some of ours. */
async function keepSchedulers({ state, queue, scheduled }: TickerDeps): Promise<void> {
  const known = new Set((await readSchedules(state)).map(({ source, stream }) => streamKey(source, stream)));
  const ours = new Map([...scheduled].filter(([key]) => known.has(key)));
  await queue.schedule(schedulersOf(ours), { removeOthers: false });
}

const schedulersOf = (scheduled: ScheduledStreams) =>
  [...scheduled.values()].map(({ job, schedule }) => ({ job: syncJob(job), schedule }));
