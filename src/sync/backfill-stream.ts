import { ConfigError } from '../model/errors.ts';
import { describeWindow, type Window } from '../model/window.ts';
import { piecesOf, sideBySide } from './backfill-plan.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { type Share, shared } from './plan.ts';
import { withReading } from './reading.ts';
import { type OpenRun, type StreamReport, withRun } from './run.ts';
import { sideBySideDo } from './side-by-side.ts';
import { createTurns } from './turns.ts';
import { type BackfillRequest, findUnread } from './unread.ts';

/** Reads a window into every sink that lacks some of it, in the backfill's lane, letting syncs go first. */
export const backfillStream = (
  deps: SyncDeps,
  job: StreamJob,
  { window, force = false }: BackfillRequest,
): Promise<StreamReport> =>
  withRun(deps, job, 'backfill', (run) =>
    withReading(deps, job, run, async ({ since, reader, committer }) => {
      const { signal } = deps;
      const { source, stream } = job;
      const { window: wanted, needs, seen } = await findUnread(deps, job, { window, force });
      if (wanted.start >= wanted.end) throw notYet(window);
      const shares = shared(needs);
      const lanes = sideBySide(seen, job.requestsPerSecond);
      const pieces = shares.flatMap(({ window: part, sinks: to }) =>
        piecesOf(part, { density: seen.density, pageRows: reader.profile().pageRows }).map((piece) => ({
          window: piece,
          sinks: to,
        })),
      );
      const turns = createTurns(run.lease, committer, signal);
      const onSlice = countDone(deps, job, run, pieces);
      await sideBySideDo(lanes, pieces, signal, async ({ window: piece, sinks: to }, still) => {
        run.enter(piece);
        deps.log.debug({ source, stream, window: describeWindow(piece) }, 'backfilling');
        const request = {
          window: piece,
          since: Math.min(since, window.start),
          lane: 'backfill',
          signal: still,
        } as const;
        for await (const slice of reader.sweep(request)) {
          turns.giveWayIfWanted();
          await committer.add(slice, to);
          onSlice(slice.window);
        }
      });
      await turns.settled();
    }),
  );

function notYet(window: Window): ConfigError {
  return new ConfigError(`nothing of ${describeWindow(window)} is old enough to be called complete`, {
    next: 'choose an earlier --to; a sync reads what is younger',
  });
}

/** Tells how much of the time asked for has been gone through. */
function countDone(
  { onProgress }: SyncDeps,
  { source, stream }: StreamJob,
  run: OpenRun,
  pieces: readonly Share[],
): (window: Window | undefined) => void {
  const totalMs = pieces.reduce((sum, { window }) => sum + window.end - window.start, 0);
  let doneMs = 0;
  return (window) => {
    if (window) doneMs += window.end - window.start;
    const rows = run.tally.read;
    onProgress({ source, stream, rows, requests: run.requests(), through: window?.end, done: doneMs / totalMs });
  };
}
