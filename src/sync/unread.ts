import { readLedger } from '../cursor/ledger.ts';
import type { Sample } from '../extract/probe.ts';
import { gaps } from '../model/coverage.ts';
import type { Window } from '../model/window.ts';
import { chunksOf } from './backfill-plan.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { joined } from './plan.ts';

export interface BackfillRequest {
  window: Window;
  /** Reads again what is proven already. */
  force?: boolean;
}

/** What of a window is still to be read, and one look at the service to judge it by. */
export interface Unread {
  /** Up to what is old enough to be called complete, by the service's clock. Empty where nothing is. */
  window: Window;
  /** By sink, in order. */
  needs: Array<{ sink: string; windows: Window[] }>;
  seen: Sample;
}

type Deps = Pick<SyncDeps, 'state' | 'sinks' | 'signal'>;

export async function findUnread(
  { state, sinks, signal }: Deps,
  job: StreamJob,
  { window: asked, force = false }: BackfillRequest,
): Promise<Unread> {
  const { source, stream, upkeep } = job;
  const seen = await job.probe(asked, { lane: 'backfill', signal });
  // What may still come late is left to the syncs.
  const end = Math.min(asked.end, (seen.serverNow ?? Date.now()) - upkeep.settleMs);
  const window = { start: asked.start, end: Math.max(asked.start, end) };
  const needs = sinks.map(async ({ name: sink }) => {
    const ledger = force ? [] : await readLedger(state, { source, stream, sink }, window.start);
    const proven = ledger.filter((entry) => entry.certified);
    return { sink, windows: gaps(proven, window) };
  });
  return { window, needs: await Promise.all(needs), seen };
}

/** The same in chunks for a queue. */
export async function unreadChunks(deps: Deps, job: StreamJob, request: BackfillRequest): Promise<Window[]> {
  const { needs, seen } = await findUnread(deps, job, request);
  return joined(needs.flatMap(({ windows }) => windows)).flatMap((window) => chunksOf(window, seen.density));
}
