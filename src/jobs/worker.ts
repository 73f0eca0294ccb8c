import { once } from 'node:events';
import { eitherSignal, isDoneWithin } from '../api/cancel.ts';
import { newRunId, type RunKind, recordBug } from '../cursor/runs.ts';
import { Fault } from '../model/errors.ts';
import type { SyncDeps } from '../sync/job.ts';
import type { StreamReport } from '../sync/run.ts';
import type { JobQueue } from './bull.ts';
import type { IncidentKind } from './incidents.ts';
import type { ParentPayload, SyncPayload, WindowPayload } from './payloads.ts';
import { runDueStream } from './run-job.ts';
import { runBackfillWindow, type WindowJobDeps } from './run-window.ts';
import { byStreamKey, type ScheduledStream, streamKey, TIMINGS, type Timings } from './schedule.ts';
import { applyConfig, runPeriodicTasks } from './ticker.ts';
import { createUpkeep } from './watchdog.ts';

export interface WorkerDeps extends Omit<SyncDeps, 'onProgress'> {
  queue: JobQueue;
  scheduled: readonly ScheduledStream[];
  webhook: string | undefined;
  muted?: readonly IncidentKind[];
  retentionMs: number;
  /** The lease holder of this worker's backfills, shown to other processes that find the stream taken. */
  backfillHolder: string;
  readWindow: WindowJobDeps['readWindow'];
  onRun?(report: StreamReport): void;
  onBug?(where: Pick<StreamReport, 'source' | 'stream'>): void;
  onReady?(): void;
  timings?: Partial<Timings>;
}

/** Runs mostly wait. A source uses at most one slot per stream, so a slow source leaves room for others. */
const SYNCS_AT_ONCE = 10;
const WINDOWS_AT_ONCE = 3;

/** Works until the signal aborts, then ends its runs. Nothing is lost, and other workers find its streams due at once. */
export async function runWorker(deps: WorkerDeps): Promise<void> {
  const { queue, log, signal, onRun = () => {} } = deps;
  const timings = { ...TIMINGS, ...deps.timings };
  const scheduled = byStreamKey(deps.scheduled);
  let isGivenUp = false;
  const upkeep = createUpkeep({ ...deps, timings, isGivenUp: () => isGivenUp });
  const shared = { ...deps, scheduled, timings, upkeep, onProgress: () => {} };
  await applyConfig(shared);

  const running = new Set<string>();
  /** Logs, counts and records an unexpected error in the run history, from which the incident and its alert follow. */
  const onBug = async (
    error: unknown,
    kind: RunKind,
    { source, stream }: SyncPayload,
    began: number,
  ): Promise<void> => {
    // The worker has closed the run's connections; its lease expires by itself.
    if (isGivenUp) return log.debug({ source, stream, reason: String(error) }, 'a run that was given up has ended');
    log.error({ source, stream, kind, err: error }, 'a bug ended this run');
    deps.onBug?.({ source, stream });
    await recordBug(deps.state, { id: newRunId(), kind, source, stream }, performance.now() - began).catch(
      // Recovery: the bug is in the log.
      (second: unknown) => log.warn({ source, stream, reason: String(second) }, 'the bug could not be recorded'),
    );
  };
  const sync = async ({ source, stream }: SyncPayload): Promise<undefined> => {
    const key = streamKey(source, stream);
    // A duplicate job: this process is already running the stream.
    if (running.has(key) || signal.aborted) return undefined;
    running.add(key);
    const slice = createSlice(queue, timings.sliceMs);
    const either = eitherSignal(signal, slice.signal);
    const began = performance.now();
    try {
      const report = await runDueStream(shared, { source, stream }, either.signal);
      if (report) onRun(report);
    } catch (error) {
      // Recovery: other streams continue, and this one is due again when its claim expires.
      if (error instanceof Fault) log.warn({ source, stream, reason: error.message }, 'run failed before it started');
      else await onBug(error, 'sync', { source, stream }, began);
    } finally {
      either.release();
      slice.end();
      running.delete(key);
    }
    return undefined;
  };
  const backfill = async (data: WindowPayload | ParentPayload): Promise<number | undefined> => {
    // The parent job runs when all its windows are done; the state already has their outcome.
    if (!('start' in data) || signal.aborted) return undefined;
    const readWindow: WindowJobDeps['readWindow'] = async (...args) => {
      const report = await deps.readWindow(...args);
      onRun(report);
      return report;
    };
    const began = performance.now();
    const reportBug: WindowJobDeps['onBug'] = (error, where) => onBug(error, 'backfill', where, began);
    // A separate holder, so that a sync of this process does not mistake a window's lease for a stale one of its own.
    return runBackfillWindow({ ...shared, readWindow, holder: deps.backfillHolder, onBug: reportBug }, data, signal);
  };

  const { lockMs } = timings;
  const handles = await Promise.all([
    queue.work('sync', { concurrency: SYNCS_AT_ONCE, lockMs, handle: (data) => sync(data as SyncPayload) }),
    queue.work('backfill', {
      concurrency: WINDOWS_AT_ONCE,
      lockMs,
      handle: (data) => backfill(data as WindowPayload | ParentPayload),
    }),
  ]);
  const periodic = runPeriodicTasks(shared);
  deps.onReady?.();
  await (signal.aborted ? undefined : Promise.race([periodic, once(signal, 'abort')]));
  // The periodic tasks, too, may wait for a database that does not answer.
  const ended = Promise.all([periodic, ...handles.map((handle) => handle.close())]);
  if (await isDoneWithin(timings.closeMs, ended)) return;
  isGivenUp = true;
  log.warn({ streams: [...running] }, 'some runs did not end in time; their leases expire by themselves');
}

/** Aborts `signal` once a run has had its slot for `ms` and another stream waits for one. */
function createSlice(queue: JobQueue, ms: number): { signal: AbortSignal; end(): void } {
  const over = new AbortController();
  const timer = setInterval(async () => {
    // Recovery: while the queue does not answer, no stream counts as waiting.
    const waiting = await queue.waiting('sync').catch(() => 0);
    if (waiting > 0) over.abort();
  }, ms);
  return { signal: over.signal, end: () => clearInterval(timer) };
}
