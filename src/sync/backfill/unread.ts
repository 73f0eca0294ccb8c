import { readLedger } from '../../cursor/ledger.ts';
import { ConfigError } from '../../model/errors.ts';
import { STREAMS, type Stream } from '../../model/streams.ts';
import {
  DAY_MS,
  describeInstant,
  describeRange,
  type Entry,
  gaps,
  startOfDay,
  type Window,
} from '../../model/window.ts';
import type { Sink } from '../../sinks/sink.ts';
import { keptFrom, refuseExpired } from '../holdings/retain.ts';
import type { StreamJob, SyncDeps } from '../job.ts';
import { joined } from '../windows-to-read.ts';

/** What a backfill has to read of the range that somebody asked for: at once, or in chunks for a queue. */

export interface BackfillRequest {
  window: Window;
  /** Reads again what is proven already. */
  force?: boolean;
  /** The run has asked the sinks what they hold of the window. */
  isAttested?: boolean;
}

/** Before anything is asked or written down: a range that cannot be read, or was not meant. */
export function refuseRange({ sinks }: Pick<SyncDeps, 'sinks'>, jobs: readonly StreamJob[], window: Window): void {
  refuseExpired(sinks, window);
  // The end of today is a way to say now.
  if (window.end > startOfDay(Date.now()) + DAY_MS)
    throw new ConfigError(`the end of the range, ${describeInstant(window.end)}, lies in the future`, {
      kept: 'everything; nothing was read or changed',
      next: 'give now, or an earlier time',
    });
  if (jobs.every(({ policy }) => window.start >= Date.now() - policy.settleMs)) throw notYet(window);
}

export function notYet(window: Window): ConfigError {
  return new ConfigError(`no part of ${describeRange(window)} is old enough to be certified`, {
    next: 'choose an earlier start; a sync reads more recent events',
  });
}

type Deps = Pick<SyncDeps, 'state' | 'sinks' | 'signal'>;

/** By sink, and a sample to estimate by. The window ends where rows are too young, by the service's clock. */
export async function findUnread(
  { state, sinks, signal }: Deps,
  job: StreamJob,
  { window: asked, force = false, isAttested = false }: BackfillRequest,
) {
  const { source, stream, policy } = job;
  const seen = await job.probe(asked, { lane: 'backfill', signal });
  // What may still come late is left to the syncs.
  const end = Math.min(asked.end, (seen.serverNow ?? Date.now()) - policy.settleMs);
  const window = { start: asked.start, end: Math.max(asked.start, end) };
  const each = sinks.map(async (sink) => {
    const ledger = await readLedger(state, { source, stream, sink: sink.name }, window.start);
    const proven = ledger.filter(({ certified, start }) => certified && start < window.end);
    const held = isAttested ? proven : await stillHeld(sink, STREAMS[stream], source, proven);
    const kept = { ...window, start: Math.max(window.start, keptFrom(sink, Date.now())) };
    return { sink: sink.name, open: gaps(held, kept), all: gaps([], kept) };
  });
  const found = await Promise.all(each);
  const needs = found.map(({ sink, open, all }) => ({ sink, windows: force ? all : open }));
  return { window, needs, unproven: joined(found.flatMap(({ open }) => open)), seen };
}

/** What is proven and still in the sink. Nothing is reopened: the run that reads the window does that. */
async function stillHeld(
  sink: Sink,
  stream: Stream,
  source: string,
  proven: readonly Entry[],
): Promise<readonly Entry[]> {
  if (!sink.attest || proven.length === 0) return proven;
  const held = await sink.attest(stream, source, proven);
  return proven.filter(({ rows }, i) => held[i]?.rows === rows && held[i]?.foreign === undefined);
}

/** The same in chunks for a queue. */
export async function unreadChunks(deps: Deps, job: StreamJob, request: BackfillRequest): Promise<Window[]> {
  refuseRange(deps, [job], request.window);
  const { needs, seen } = await findUnread(deps, job, request);
  return joined(needs.flatMap(({ windows }) => windows)).flatMap((window) => chunksOf(window, seen.density));
}

/** Rows a job of the queue holds: some minutes of work on any plan, so that a lost worker loses little. */
const ROWS_A_CHUNK = 100_000;
const MOST_CHUNKS = 400;
/** A stream without rows is cut into months: a handful of requests each. */
const LONGEST_DAYS = 31;

/** Chunks for a queue: whole days, whatever was proven of them already. */
export function chunksOf({ start, end }: Window, density: number): Window[] {
  const days = Math.min(LONGEST_DAYS, Math.max(1, Math.floor(ROWS_A_CHUNK / (density * DAY_MS))));
  const length = Math.max(days, Math.ceil((end - start) / DAY_MS / MOST_CHUNKS)) * DAY_MS;
  const chunks: Window[] = [];
  for (let at = start; at < end; at = startOfDay(at) + length)
    chunks.push({ start: at, end: Math.min(end, startOfDay(at) + length) });
  return chunks;
}
