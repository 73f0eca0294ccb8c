import { readLedger } from '../cursor/ledger.ts';
import { describeRange } from '../model/window.ts';
import { sideBySide } from './backfill-plan.ts';
import { bringUpToDate } from './bring-up-to-date.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { withReading } from './reading.ts';
import { type StreamReport, withRun } from './run.ts';

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
