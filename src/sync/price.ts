import { MAX_LIMIT } from '../api/params.ts';
import type { Instant } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import type { Window } from '../model/window.ts';
import { sideBySide } from './backfill-plan.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { joined } from './plan.ts';
import { PAGES_AN_EDGE } from './read-together.ts';
import { type BackfillRequest, findUnread } from './unread.ts';

/** What a backfill of one stream will cost, before it runs. */
export interface Price {
  source: string;
  stream: StreamName;
  /** What was asked for, up to what is old enough to be called complete. */
  window: Window;
  /** What is still to be read, in order. */
  toRead: readonly Window[];
  /** The part of the window, by time, that every sink has proven already and that will be skipped. */
  certified: number;
  rows: number;
  /** Every row was counted; otherwise guessed from how closely they follow each other at the places looked at. */
  isCounted: boolean;
  requests: number;
  /** Requests that finding this out took. */
  probes: number;
  /** How long it takes where nothing else uses the budget. */
  secondsAt(requestsPerSecond: number): number;
}

/** How many stretches of time are looked at, each at its beginning and, where there is much, in its middle. */
const PLACES = 8;
/** Pages overlap by the rows of one instant. */
const OVERLAP = 1.02;
/** To find a piece's beginning and to prove its end. */
const EDGE_REQUESTS = 2;

export async function priceBackfill(
  deps: Pick<SyncDeps, 'state' | 'sinks' | 'signal'>,
  job: StreamJob,
  request: BackfillRequest,
): Promise<Price> {
  const { signal } = deps;
  const { source, stream } = job;
  const { window, needs, seen: first } = await findUnread(deps, job, request);
  const toRead = joined(needs.flatMap(({ windows }) => windows));
  const openMs = lengthOf(toRead);
  const isWhole = openMs === window.end - window.start;
  let [rows, probes, isCounted] = [first.density * openMs, 1, isWhole];
  // A window that fits a page has been seen already; anything longer is looked at here and there.
  if (first.isFull) [rows, isCounted] = [0, true];
  for (const place of first.isFull ? placesIn(toRead, openMs / PLACES) : []) {
    const samples = [await job.probe(place, { lane: 'backfill', signal })];
    if (samples[0]?.isFull) {
      const middle = { start: (place.start + place.end) / 2, end: place.end };
      samples.push(await job.probe(middle, { lane: 'backfill', signal }));
      isCounted = false;
    }
    probes += samples.length;
    const density = samples.reduce((sum, sample) => sum + sample.density, 0) / samples.length;
    rows += density * (place.end - place.start);
  }
  const pieces = toRead.length + Math.floor(rows / MAX_LIMIT / PAGES_AN_EDGE);
  const requests = Math.ceil((rows / MAX_LIMIT) * OVERLAP) + EDGE_REQUESTS * pieces;
  return {
    source,
    stream,
    window,
    toRead,
    certified: 1 - openMs / Math.max(1, window.end - window.start),
    rows: Math.round(rows),
    isCounted,
    requests,
    probes,
    secondsAt(requestsPerSecond) {
      // What the service is too slow for cannot be bought: its answers come one after another in each of the pieces.
      const atOnce = Math.max(1, Math.min(pieces, sideBySide(first.tookMs, requestsPerSecond)));
      return Math.max(requests / requestsPerSecond, (requests * first.tookMs) / 1000 / atOnce);
    },
  };
}

const lengthOf = (windows: readonly Window[]): number => windows.reduce((sum, { start, end }) => sum + end - start, 0);

/** Stretches of about the same length, none across a gap. */
function placesIn(windows: readonly Window[], lengthMs: number): Window[] {
  return windows.flatMap(({ start, end }) => {
    const count = Math.max(1, Math.round((end - start) / lengthMs));
    const edge = (i: number): Instant => Math.round(start + ((end - start) * i) / count);
    return Array.from({ length: count }, (_, i) => ({ start: edge(i), end: edge(i + 1) }));
  });
}
