import { performance } from 'node:perf_hooks';
import type { Reader } from '../extract/reader.ts';

/** A chain waits for its answer and for the sinks before its next request; a second chain uses the budget meanwhile. */
const LEAST_SIDE_BY_SIDE = 2;
const MOST_SIDE_BY_SIDE = 8;
/** Room for answers that are slower than the one that was measured. */
const ROOM = 2;

/** Pages that are read side by side are held side by side. Eight usual ones take 35 MB. */
const MOST_BYTES_SIDE_BY_SIDE = 48 * 1024 * 1024;

type Measured = Pick<Reader, 'answerMs' | 'answers' | 'answerBytes'>;

/** How many chains a reading may run at a time. It follows what the reader has measured. */
export function createChainsAtOnce(requestsPerSecond: number, reader: Measured): () => number {
  const pageMs = createPageMs(reader.answers);
  return () => parallelism(reader.answerMs(), requestsPerSecond, reader.answerBytes(), pageMs());
}

/** Latency times rate uses up the budget (Little's law); fewer where pages are large, or this process is slow. */
export function parallelism(answerMs: number, requestsPerSecond: number, answerBytes = 0, pageMs = 0): number {
  const gapMs = 1000 / requestsPerSecond;
  const wanted =
    pageMs > gapMs
      ? 1 + Math.floor(answerMs / pageMs)
      : Math.max(LEAST_SIDE_BY_SIDE, Math.ceil((answerMs / gapMs) * ROOM));
  const fit = Math.floor(MOST_BYTES_SIDE_BY_SIDE / Math.max(1, answerBytes));
  return Math.max(1, Math.min(wanted, MOST_SIDE_BY_SIDE, fit));
}

/** A thousand usual rows, on the way into Postgres. */
const USUAL_PAGE_MS = 50;
const MEASURED_FOR_MS = 1000;

/** How long this process takes for a page, with all that it does besides, by how busy its event loop has been lately. */
export function createPageMs(answers: () => number): () => number {
  let since = performance.eventLoopUtilization();
  let [lookedAt, seen, pageMs] = [performance.now(), answers(), USUAL_PAGE_MS];
  return () => {
    const came = answers() - seen;
    if (came === 0 || performance.now() - lookedAt < MEASURED_FOR_MS) return pageMs;
    pageMs = performance.eventLoopUtilization(since).active / came;
    [since, lookedAt, seen] = [performance.eventLoopUtilization(), performance.now(), answers()];
    return pageMs;
  };
}
