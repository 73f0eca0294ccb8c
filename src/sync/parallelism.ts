import { performance } from 'node:perf_hooks';
import type { Reader } from '../extract/reader.ts';

/** A chain waits for the answer and for the sinks before its next request; a second chain uses the budget meanwhile. */
const LEAST_SIDE_BY_SIDE = 2;
const MOST_SIDE_BY_SIDE = 8;
/** Headroom for answers that are slower than the measured one. */
const HEADROOM = 2;

/** Limits the pages in memory, one per chain. Eight pages of the usual size take 35 MB. */
const MOST_BYTES_SIDE_BY_SIDE = 48 * 1024 * 1024;

type Measured = Pick<Reader, 'answerMs' | 'answers' | 'answerBytes'>;

/** The number of chains that may run in parallel, by the reader's current measurements. */
export function createChainsAtOnce(requestsPerSecond: number, reader: Measured): () => number {
  const pageMs = createPageMs(reader.answers);
  return () => parallelism(reader.answerMs(), requestsPerSecond, reader.answerBytes(), pageMs());
}

/** Latency times rate chains use up the budget (Little's law); fewer if pages are large or this process is slow. */
export function parallelism(answerMs: number, requestsPerSecond: number, answerBytes = 0, pageMs = 0): number {
  const gapMs = 1000 / requestsPerSecond;
  const wanted =
    pageMs > gapMs
      ? 1 + Math.floor(answerMs / pageMs)
      : Math.max(LEAST_SIDE_BY_SIDE, Math.ceil((answerMs / gapMs) * HEADROOM));
  const fit = Math.floor(MOST_BYTES_SIDE_BY_SIDE / Math.max(1, answerBytes));
  return Math.max(1, Math.min(wanted, MOST_SIDE_BY_SIDE, fit));
}

/** The default: the time to load a thousand usual rows into Postgres. */
const USUAL_PAGE_MS = 50;
const MEASURED_FOR_MS = 1000;

/** How long this process takes per page, including all its other work, by the recent utilization of its event loop. */
export function createPageMs(answers: () => number): () => number {
  let since = performance.eventLoopUtilization();
  let [measuredAt, seen, pageMs] = [performance.now(), answers(), USUAL_PAGE_MS];
  return () => {
    const pages = answers() - seen;
    if (pages === 0 || performance.now() - measuredAt < MEASURED_FOR_MS) return pageMs;
    pageMs = performance.eventLoopUtilization(since).active / pages;
    [since, measuredAt, seen] = [performance.eventLoopUtilization(), performance.now(), answers()];
    return pageMs;
  };
}
