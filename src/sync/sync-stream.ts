import { readLedger } from '../cursor/ledger.ts';
import { Fault } from '../model/errors.ts';
import type { StreamName } from '../model/streams.ts';
import { describeRange } from '../model/window.ts';
import { type BackfillRequest, backfillStream, sideBySide } from './backfill-stream.ts';
import { bringUpToDate } from './bring-up-to-date.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { type StreamReport, withReading, withRun } from './run.ts';

/** What became of a stream: a report, or a fault with the report of what was done before it, if it was begun at all. */
export type Outcome = { source: string; stream: StreamName } & (
  | { fault: undefined; report: StreamReport }
  | { fault: Fault; report: StreamReport | undefined }
);

/** All streams side by side: each waits for the service in turn while the others use the budget. One's fault stops only itself. */
export const syncAll = (deps: SyncDeps, jobs: readonly StreamJob[]): Promise<Outcome[]> =>
  forAll(jobs, (job) => syncStream(deps, job));

export const backfillAll = (deps: SyncDeps, jobs: readonly StreamJob[], request: BackfillRequest): Promise<Outcome[]> =>
  forAll(jobs, (job) => backfillStream(deps, job, request));

function forAll(jobs: readonly StreamJob[], work: (job: StreamJob) => Promise<StreamReport>): Promise<Outcome[]> {
  return Promise.all(
    jobs.map(async (job) => {
      const { source, stream } = job;
      try {
        const report = await work(job);
        const { fault } = report;
        return fault ? { source, stream, report, fault } : { source, stream, report, fault };
      } catch (error) {
        if (!(error instanceof Fault)) throw error;
        // Recovery: the stream was never begun; the others go on.
        return { source, stream, report: undefined, fault: error.at({ source, stream }) };
      }
    }),
  );
}

/** Brings one stream of a source up to date in every sink. */
export const syncStream = (deps: SyncDeps, job: StreamJob): Promise<StreamReport> =>
  withRun(deps, job, 'sync', (run) =>
    withReading(deps, job, run, async ({ since, cursors, reader, committer }) => {
      const { state, log, signal } = deps;
      const { source, stream, upkeep } = job;
      const sinks = [...cursors].map(([sink, cursor]) => ({
        sink,
        completeThrough: cursor?.completeThrough,
        newestSeen: cursor?.newestSeen,
        ledger: () => readLedger(state, { source, stream, sink }, since),
      }));
      const onWindow: typeof run.enter = (window) => {
        log.debug({ source, stream, window: describeRange(window) }, 'sweeping');
        run.enter(window);
      };
      const lanes = (): number => sideBySide(reader.answerMs(), job.requestsPerSecond);
      return bringUpToDate({ upkeep, standing: { since, sinks }, reader, committer, signal, lanes, onWindow });
    }),
  );
