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
import type { Upkeep } from './upkeep.ts';

interface TickerDeps extends AlertDeps {
  queue: JobQueue;
  timings: Timings;
  upkeep: Upkeep;
  /** How long the history of runs is kept. */
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

/**
 * The safety net under the queue: a stream that is due by the state and that the queue has lost is enqueued again. Every worker does
 * this; a job that is already there is not added twice.
 */
export async function runTicker(deps: TickerDeps, signal: AbortSignal): Promise<void> {
  const { timings, upkeep } = deps;
  let watched = 0;
  let tidied = performance.now();
  do {
    await upkeep('giving due streams to the queue', () => enqueueDue(deps));
    await upkeep('giving windows to the queue', async () => {
      await finishBackfills(deps.state);
      await enqueueWindows(deps);
    });
    if (performance.now() - watched < timings.watchMs && watched > 0) continue;
    watched = performance.now();
    await upkeep(SCHEDULERS, () => keepSchedulers(deps));
    await upkeep('looking for trouble', () => watch(deps));
    if (performance.now() - tidied < HOUR_MS) continue;
    tidied = performance.now();
    await upkeep('removing old runs', () => removeOldHistory(deps.state, deps.retentionMs));
  } while (await sleep(timings.tickMs, true, { signal }).catch(() => false));
}

interface RepairDeps extends Pick<TickerDeps, 'log' | 'timings' | 'upkeep'> {
  sinks: readonly Sink[];
  signal: AbortSignal;
}

/**
 * The lane of what is not urgent: sinks are maintained beside the runs, one after the other. Every worker does this; the second to come
 * finds nothing to do.
 */
export async function runRepairs({ sinks, log, signal, timings, upkeep }: RepairDeps): Promise<void> {
  while (await sleep(timings.maintainMs, true, { signal }).catch(() => false)) {
    for (const sink of sinks) {
      await upkeep(`the maintenance of sink "${sink.name}"`, (until) => maintainSink(sink, log, until));
    }
  }
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
