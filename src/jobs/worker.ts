import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { eitherSignal, onAbort } from '../api/cancel.ts';
import { finishBackfills } from '../cursor/backfills.ts';
import { newRunId, type RunKind, recordBug, removeOldHistory } from '../cursor/runs.ts';
import { readSchedules, unparkChanged, writeSchedules } from '../cursor/schedules.ts';
import { Fault } from '../model/errors.ts';
import type { Sink } from '../sinks/sink.ts';
import type { SyncDeps } from '../sync/job.ts';
import type { StreamReport } from '../sync/run.ts';
import { maintainSink } from '../sync/sync-stream.ts';
import { type AlertDeps, watch } from './alerts.ts';
import { enqueueWindows } from './backfills.ts';
import type { JobQueue, WorkerHandle } from './bull.ts';
import { type IncidentKind, recordWorkerTrouble } from './incidents.ts';
import { type ParentPayload, type SyncPayload, syncJob, type WindowPayload } from './payloads.ts';
import { createProgressRecorder } from './progress.ts';
import { runDueStream } from './run-job.ts';
import { runBackfillWindow, type WindowJobDeps } from './run-window.ts';
import {
  byStreamKey,
  type ScheduledStream,
  type ScheduledStreams,
  streamKey,
  TIMINGS,
  type Timings,
} from './schedule.ts';
import { createUpkeep, type Upkeep } from './upkeep.ts';

interface WorkerDeps extends Omit<SyncDeps, 'onProgress'> {
  sinks: readonly Sink[];
  queue: JobQueue;
  scheduled: readonly ScheduledStream[];
  webhook: string | undefined;
  /** Kinds of alerts that the webhook does not get. */
  muted?: readonly IncidentKind[];
  /** How long the history of runs is kept. */
  retentionMs: number;
  /** Names this worker in the lease of a backfill, for others who find the stream taken. */
  backfillHolder: string;
  readWindow: WindowJobDeps['readWindow'];
  /** Called with every run that ended, by a sync or a backfill. */
  onRun?(report: StreamReport): void;
  /** Called with every job that a bug ended. */
  onBug?(where: Pick<StreamReport, 'source' | 'stream'>): void;
  onReady?(): void;
  /** For tests: how often things are looked at. */
  timings?: Partial<Timings>;
}

/**
 * Runs mostly wait for answers and for the budget, so a process can have many at once. A source takes at most three of these
 * places, one per stream, so a slow source leaves room for others.
 */
const SYNCS_AT_ONCE = 10;
const WINDOWS_AT_ONCE = 3;

/** Works until the signal, then ends its runs. Nothing is lost, and its streams are due at once for other workers. */
export async function runWorker(deps: WorkerDeps): Promise<void> {
  const { queue, log, signal, onRun = () => {} } = deps;
  const timings = { ...TIMINGS, ...deps.timings };
  const scheduled = byStreamKey(deps.scheduled);
  const upkeep = createUpkeep({ ...deps, timings });
  const shared = { ...deps, scheduled, timings, upkeep, onProgress: createProgressRecorder(deps) };
  await applyConfig(shared);

  const atWork = new Set<string>();
  let isGivenUp = false;
  /** An error that is none of ours: logged, counted, and in the history, from where it becomes a trouble and an alert. */
  const onBug = async (
    error: unknown,
    kind: RunKind,
    { source, stream }: SyncPayload,
    began: number,
  ): Promise<void> => {
    // The connections were closed under it; its lease expires by itself.
    if (isGivenUp) return log.debug({ source, stream, reason: String(error) }, 'a run that was given up has ended');
    log.error({ source, stream, kind, err: error }, 'a bug ended this run');
    deps.onBug?.({ source, stream });
    await recordBug(deps.state, { id: newRunId(), kind, source, stream }, performance.now() - began).catch(
      // Recovery: the log has it.
      (second: unknown) => log.warn({ source, stream, reason: String(second) }, 'the bug could not be recorded'),
    );
  };
  const sync = async ({ source, stream }: SyncPayload): Promise<undefined> => {
    const key = streamKey(source, stream);
    // This process is already running the stream: the job is a repeat.
    if (atWork.has(key) || signal.aborted) return undefined;
    atWork.add(key);
    const slice = createSlice(queue, timings.sliceMs);
    const either = eitherSignal(signal, slice.signal);
    const began = performance.now();
    try {
      const report = await runDueStream(shared, { source, stream }, either.signal);
      if (report) onRun(report);
    } catch (error) {
      // Recovery: other streams go on, and this one is due again when the claim expires.
      if (error instanceof Fault) log.warn({ source, stream, reason: error.message }, 'run failed before it started');
      else await onBug(error, 'sync', { source, stream }, began);
    } finally {
      either.release();
      slice.end();
      atWork.delete(key);
    }
    return undefined;
  };
  const backfill = async (data: WindowPayload | ParentPayload): Promise<number | undefined> => {
    // The parent job runs when all its windows are done. The state already has their outcome.
    if (!('start' in data) || signal.aborted) return undefined;
    const readWindow: WindowJobDeps['readWindow'] = async (...args) => {
      const report = await deps.readWindow(...args);
      onRun(report);
      return report;
    };
    const began = performance.now();
    const reportBug: WindowJobDeps['onBug'] = (error, where) => onBug(error, 'backfill', where, began);
    // A holder of its own, so that a sync of this process does not mistake a window's lease for one it left behind.
    return runBackfillWindow({ ...shared, readWindow, holder: deps.backfillHolder, onBug: reportBug }, data, signal);
  };

  const delay = measureLoopDelay();
  const { lockMs } = timings;
  const handles = await Promise.all([
    queue.work('sync', { concurrency: SYNCS_AT_ONCE, lockMs, handle: (data) => sync(data as SyncPayload) }),
    queue.work('backfill', {
      concurrency: WINDOWS_AT_ONCE,
      lockMs,
      handle: (data) => backfill(data as WindowPayload | ParentPayload),
    }),
  ]);
  const ticker = runTicker(shared, signal);
  const repairs = runRepairs(shared);
  const loop = watchLoop();
  deps.onReady?.();
  await Promise.race([ticker, aborted(signal)]);
  clearInterval(loop);
  delay.stop();
  await dismiss(handles);

  /** A lock is renewed four times before it expires, so a process that blocks for half of that time may lose it. */
  function watchLoop(): NodeJS.Timeout {
    return setInterval(() => {
      const longestMs = Math.round(delay.takeMaxMs());
      log.debug({ longestMs, lockMs }, 'how long this process was busy at a stretch');
      if (longestMs > lockMs / 4) log.warn({ longestMs, lockMs }, 'this process is so busy that it may lose its jobs');
    }, lockMs).unref();
  }

  async function dismiss(handles: readonly WorkerHandle[]): Promise<void> {
    const inTime = await Promise.race([
      // The ticker, too, may wait for a database that does not answer.
      Promise.all([ticker, repairs, ...handles.map((handle) => handle.close())]).then(() => true),
      sleep(timings.closeMs, false, { ref: false }),
    ]);
    if (inTime) return;
    isGivenUp = true;
    log.warn({ streams: [...atWork] }, 'some runs did not end in time; their leases end by themselves');
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else onAbort(signal, resolve);
  });

/** A run keeps its place for a while; after that it makes room if another stream waits. */
function createSlice(queue: JobQueue, ms: number): { signal: AbortSignal; end(): void } {
  const over = new AbortController();
  const timer = setInterval(async () => {
    // Recovery: while the queue does not answer, nobody is known to wait.
    const waiting = await queue.waiting('sync').catch(() => 0);
    if (waiting > 0) over.abort();
  }, ms);
  return { signal: over.signal, end: () => clearInterval(timer) };
}

/** How long the event loop was blocked: renewals of locks and leases wait that long. */
interface LoopDelay {
  /** The longest since the last reading. */
  takeMaxMs(): number;
  stop(): void;
}

function measureLoopDelay(): LoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: 20 });
  histogram.enable();
  return {
    takeMaxMs() {
      const max = histogram.max / 1e6;
      histogram.reset();
      return max;
    },
    stop: () => void histogram.disable(),
  };
}

const TIDY_MS = 3_600_000;

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
async function runTicker(deps: TickerDeps, signal: AbortSignal): Promise<void> {
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
    if (performance.now() - tidied < TIDY_MS) continue;
    tidied = performance.now();
    await upkeep('removing old runs', () => removeOldHistory(deps.state, deps.retentionMs));
  } while (await sleep(timings.tickMs, true, { signal }).catch(() => false));
}

type RepairDeps = Pick<WorkerDeps, 'sinks' | 'log' | 'signal'> & Pick<TickerDeps, 'timings' | 'upkeep'>;

/**
 * The lane of what is not urgent: sinks are maintained beside the runs, one after the other. Every worker does this; the second to come
 * finds nothing to do.
 */
async function runRepairs({ sinks, log, signal, timings, upkeep }: RepairDeps): Promise<void> {
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
