import { createHash } from 'node:crypto';
import { eitherSignal } from '../api/cancel.ts';
import type { Config, SourceConfig, StreamConfig } from '../config/index.ts';
import { holderOf } from '../cursor/database/holders.ts';
import type { BackfillDeps } from '../jobs/backfills.ts';
import { createQueue, type JobQueue } from '../jobs/bull.ts';
import { type ScheduledStream, scheduleText } from '../jobs/schedule.ts';
import { runWorker, type WorkerDeps } from '../jobs/worker.ts';
import type { Log } from '../model/log.ts';
import { backfillStream } from '../sync/backfill/backfill-stream.ts';
import { type SyncApp, withApp, withSyncApp } from './index.ts';
import { type Closers, withClosers } from './resources.ts';

export interface WorkerAppOptions extends Pick<WorkerDeps, 'log' | 'signal' | 'onRun' | 'onBug' | 'timings'> {
  config: Config;
  onReady?(about: { streams: number; queue: string; state: string }): void;
  /** Starts something that runs alongside the worker, such as the control room. */
  alongside?(app: WorkerApp, closers: Closers): Promise<void>;
}

export interface WorkerApp extends SyncApp {
  queue: JobQueue;
  scheduled: readonly ScheduledStream[];
}

export function runWorkerApp(options: WorkerAppOptions): Promise<void> {
  const { config, alongside, onReady, ...deps } = options;
  const { log, signal } = deps;
  const run = (app: SyncApp) =>
    withClosers(async (closers) => {
      const queue = await openQueue(config, { log, stateUrl: app.stateUrl }, closers);
      const scheduled = scheduledStreamsOf(config, app);
      await alongside?.({ ...app, queue, scheduled }, closers);
      const either = eitherSignal(signal, app.lost);
      closers.push(async () => either.release());
      await runWorker({
        ...deps,
        state: app.state,
        sinks: app.sinks,
        signal: either.signal,
        holder: holderOf('worker'),
        backfillHolder: holderOf('worker, backfill'),
        queue,
        scheduled,
        webhook: config.alerts.webhook,
        muted: config.alerts.mute,
        retentionMs: config.state.retention,
        readWindow: backfillStream,
        onReady: () => onReady?.({ streams: scheduled.length, queue: queue.place, state: app.stateName }),
      });
      if (app.lost.aborted) throw app.lost.reason;
    });
  return withSyncApp({ config, log }, run);
}

export function withQueue<T>(
  { config, log }: { config: Config; log: Log },
  work: (deps: BackfillDeps & { queue: JobQueue }) => Promise<T>,
): Promise<T> {
  return withApp({ config, log }, ({ state, stateUrl }) =>
    withClosers(async (closers) => {
      const queue = await openQueue(config, { log, stateUrl }, closers);
      return work({ state, queue });
    }),
  );
}

export async function openQueue(
  { queue: { url }, state: { directUrl } }: Config,
  { log, stateUrl }: { log: Log; stateUrl: string },
  closers: Closers,
): Promise<JobQueue> {
  const queue = await createQueue({ url, stateUrl: directUrl ?? stateUrl, log });
  closers.push(() => queue.close());
  return queue;
}

export const scheduledStreamsOf = (
  { sources }: Config,
  { jobs, links }: Pick<SyncApp, 'jobs' | 'links'>,
): ScheduledStream[] =>
  [...jobs, ...links].map((job) => {
    const source = sources[job.source];
    const settings = job.stream === 'links' ? source?.links : source?.streams[job.stream];
    if (!source || !settings) throw new Error(`the config has no ${job.source}/${job.stream}`);
    return {
      job,
      schedule: scheduleText('schedule' in settings ? settings.schedule : settings, `${job.source}/${job.stream}`),
      maxLagMs: settings.maxLag,
      fingerprint: fingerprintOf(source, 'schedule' in settings ? settings : {}),
    };
  });

/** Long enough to distinguish two configs, too short to search for a matching key. */
const FINGERPRINT_DIGITS = 12;

function fingerprintOf(
  { baseUrl, apiKey }: SourceConfig,
  { filters, unknownFields }: Partial<Pick<StreamConfig, 'filters' | 'unknownFields'>>,
): string {
  const refusable = JSON.stringify([baseUrl, apiKey, filters?.query, unknownFields]);
  return createHash('sha256').update(refusable).digest('hex').slice(0, FINGERPRINT_DIGITS);
}
