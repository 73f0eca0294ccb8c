import type { Queryable } from '../cursor/database/index.ts';
import { recordProgress } from '../cursor/runs.ts';
import type { Log } from '../model/log.ts';
import type { SyncProgress } from '../sync/job.ts';
import { streamKey } from './schedule.ts';

/** Often enough to be watched. A poll is over before the first time. */
const EVERY_MS = 2000;

/** Writes into the history how many rows and requests a long run has so far, so that the control room can show a run while it reads. */
export function createProgressRecorder(
  { state, log }: { state: Queryable; log: Log },
  everyMs = EVERY_MS,
): (progress: SyncProgress) => void {
  const last = new Map<string, { runId: string; at: number }>();
  return ({ source, stream, runId, rows, requests }) => {
    if (runId === undefined) return;
    const key = streamKey(source, stream);
    const before = last.get(key);
    const at = performance.now();
    if (before?.runId === runId && at - before.at < everyMs) return;
    last.set(key, { runId, at });
    if (before?.runId !== runId) return;
    recordProgress(state, runId, { rows, requests }).catch((error: unknown) => {
      // Recovery: none needed; the next figures come shortly, and the end of the run counts again.
      log.debug({ source, stream, run: runId, reason: String(error) }, 'the progress of a run could not be recorded');
    });
  };
}
