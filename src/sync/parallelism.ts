import { performance } from 'node:perf_hooks';
import type { Reader } from '../extract/reader.ts';

/** A chain waits for its answer and for the sinks before its next request; a second chain uses the budget meanwhile. */
const LEAST_SIDE_BY_SIDE = 2;
const MOST_SIDE_BY_SIDE = 8;
/** Room for answers that are slower than the one that was measured. */
const ROOM = 2;

/** Pages that are read side by side are held side by side. Eight usual ones take 35 MB. */
const MOST_BYTES_SIDE_BY_SIDE = 48 * 1024 * 1024;

/** How many chains a reading may run at a time. It follows what the reader has measured. */
export function createChainsAtOnce(
  requestsPerSecond: number,
  reader: Pick<Reader, 'answerMs' | 'answerBytes'>,
): () => number {
  const isBusy = createIsBusy();
  return () => parallelism(reader.answerMs(), requestsPerSecond, reader.answerBytes(), isBusy());
}

/** Latency times rate is the number of requests in flight that uses up the budget (Little's law); fewer where pages are large. */
export function parallelism(answerMs: number, requestsPerSecond: number, answerBytes = 0, isBusy = false): number {
  const inFlight = Math.ceil((answerMs / 1000) * requestsPerSecond * ROOM);
  // A process that is busy all the time reads no faster with more chains. It holds a page for each, and its sinks get shorter stretches.
  const most = isBusy ? LEAST_SIDE_BY_SIDE : MOST_SIDE_BY_SIDE;
  const wanted = Math.min(most, Math.max(LEAST_SIDE_BY_SIDE, inFlight));
  return Math.max(1, Math.min(wanted, Math.floor(MOST_BYTES_SIDE_BY_SIDE / Math.max(1, answerBytes))));
}

const BUSY = 0.75;
const BUSY_FOR_MS = 1000;

/** Whether the event loop has had no pause worth mentioning lately; until that is known, yes. */
export function createIsBusy(): () => boolean {
  let [since, lookedAt, isBusy] = [performance.eventLoopUtilization(), performance.now(), true];
  return () => {
    if (performance.now() - lookedAt < BUSY_FOR_MS) return isBusy;
    isBusy = performance.eventLoopUtilization(since).utilization > BUSY;
    [since, lookedAt] = [performance.eventLoopUtilization(), performance.now()];
    return isBusy;
  };
}
