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

/** Determines which parts of a requested range a backfill has to read: at once, or in chunks for a queue. */

export interface BackfillRequest {
  window: Window;
  /** Also reads what is already certified. */
  force?: boolean;
  /** The run has already compared the ledger of the window with the sinks. */
  isAttested?: boolean;
}

/** Rejects a range that cannot be read or is likely a mistake, before any request is sent or anything is stored. */
export function refuseRange({ sinks }: Pick<SyncDeps, 'sinks'>, jobs: readonly StreamJob[], window: Window): void {
  refuseExpired(sinks, window);
  // The end of today is accepted as meaning now.
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

/** Returns what each sink needs, and a sample for estimates. Cuts the window where rows are too young by the service's clock. */
export async function findUnread(
  { state, sinks, signal }: Deps,
  job: StreamJob,
  { window: requested, force = false, isAttested = false }: BackfillRequest,
) {
  const { source, stream, policy } = job;
  const seen = await job.probe(requested, { lane: 'backfill', signal });
  // Time in which events may still arrive late is left to the syncs.
  const end = Math.min(requested.end, (seen.serverNow ?? Date.now()) - policy.settleMs);
  const window = { start: requested.start, end: Math.max(requested.start, end) };
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

/** The proven windows whose rows are still in the sink. Reopens nothing: the run that reads the window does that. */
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

/** What a backfill has to read, in chunks for a queue. */
export async function unreadChunks(deps: Deps, job: StreamJob, request: BackfillRequest): Promise<Window[]> {
  refuseRange(deps, [job], request.window);
  const { needs, seen } = await findUnread(deps, job, request);
  return joined(needs.flatMap(({ windows }) => windows)).flatMap((window) => chunksOf(window, seen.density));
}

/** Rows per queue job: some minutes of work on any plan, so that little work is lost with a worker. */
const ROWS_PER_CHUNK = 100_000;
const MOST_CHUNKS = 400;
/** A stream without rows is cut into months, which take a few requests each. */
const LONGEST_DAYS = 31;

/** Cuts a window into chunks of whole days, regardless of what is already proven in them. */
export function chunksOf({ start, end }: Window, density: number): Window[] {
  const days = Math.min(LONGEST_DAYS, Math.max(1, Math.floor(ROWS_PER_CHUNK / (density * DAY_MS))));
  const length = Math.max(days, Math.ceil((end - start) / DAY_MS / MOST_CHUNKS)) * DAY_MS;
  const chunks: Window[] = [];
  for (let at = start; at < end; at = startOfDay(at) + length)
    chunks.push({ start: at, end: Math.min(end, startOfDay(at) + length) });
  return chunks;
}
