import { certifiedShare } from '../cursor/coverage.ts';
import { ConfigError } from '../model/errors.ts';
import { describeRange, type Window } from '../model/window.ts';
import { sideBySide } from './backfill-plan.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { type Share, shared } from './plan.ts';
import { readTogether } from './read-together.ts';
import { withReading } from './reading.ts';
import { type OpenRun, type StreamReport, withRun } from './run.ts';
import { createTurns } from './turns.ts';
import { type BackfillRequest, findUnread } from './unread.ts';

/** Reads a window into every sink that lacks some of it, in the backfill's lane, letting syncs go first. */
export async function backfillStream(
  deps: SyncDeps,
  job: StreamJob,
  { window, force = false }: BackfillRequest,
): Promise<StreamReport> {
  let read: Window | undefined;
  const report = await withRun(deps, job, 'backfill', (run) =>
    withReading(deps, job, run, async ({ reader, committer }) => {
      const { signal } = deps;
      const { source, stream } = job;
      const { window: wanted, needs, seen } = await findUnread(deps, job, { window, force });
      if (wanted.start >= wanted.end) throw notYet(window);
      read = wanted;
      const shares = shared(needs).map((share) => ({ ...share, lane: 'backfill' as const }));
      const turns = createTurns(run.lease, committer, signal);
      const onSlice = countDone(deps, job, run, shares);
      await readTogether(shares, {
        lanes: () => sideBySide(seen.tookMs, job.requestsPerSecond),
        profile: reader.profile,
        signal,
        sweep: (part, { lane }, still) => {
          run.enter(part);
          deps.log.debug({ source, stream, window: describeRange(part) }, 'backfilling');
          return reader.sweep({ window: part, lane, signal: still });
        },
        async take(slice, { sinks }) {
          turns.giveWayIfWanted();
          await committer.add(slice, sinks);
          onSlice(slice.window);
        },
      });
      await turns.settled();
      return wanted;
    }),
  );
  // A run that a fault has stopped may have lost the database; what stopped it says what was kept.
  if (!read || report.fault) return report;
  const sinks = deps.sinks.map(({ name }) => name);
  return { ...report, range: { window: read, certified: await certifiedShare(deps.state, job, sinks, read) } };
}

function notYet(window: Window): ConfigError {
  return new ConfigError(`nothing of ${describeRange(window)} is old enough to be called complete`, {
    next: 'choose an earlier --to; a sync reads what is younger',
  });
}

/** Tells how much of the time asked for has been gone through. Where two chains meet, a little is gone through twice. */
function countDone(
  { onProgress }: SyncDeps,
  { source, stream }: StreamJob,
  run: OpenRun,
  shares: readonly Share[],
): (window: Window | undefined) => void {
  const totalMs = shares.reduce((sum, { window }) => sum + window.end - window.start, 0);
  let doneMs = 0;
  return (window) => {
    if (window) doneMs += window.end - window.start;
    const rows = run.tally.read;
    onProgress({
      source,
      stream,
      rows,
      requests: run.requests(),
      through: window?.end,
      done: Math.min(1, doneMs / totalMs),
    });
  };
}
