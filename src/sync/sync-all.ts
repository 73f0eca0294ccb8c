import { Fault } from '../model/errors.ts';
import type { StreamName } from '../model/streams.ts';
import { backfillStream } from './backfill-stream.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import type { StreamReport } from './run.ts';
import { syncStream } from './sync-stream.ts';
import type { BackfillRequest } from './unread.ts';

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
