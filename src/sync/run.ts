import { type Cursor, lowestCursor } from '../cursor/cursors.ts';
import { acquireLease, type Lease } from '../cursor/leases.ts';
import { emptyTally, finishRun, newRunId, type RunKind, type RunState, startRun, type Tally } from '../cursor/runs.ts';
import { Cancelled, Fault, RetryLater, StopStream } from '../model/errors.ts';
import { toIso } from '../model/instant.ts';
import { observed } from '../model/observed.ts';
import type { StreamName } from '../model/streams.ts';
import { describeRange, type Window } from '../model/window.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import type { Unproven } from './plan.ts';

/** A run under way: it holds the lease, counts, and knows which window it is in. */
export interface OpenRun {
  id: string;
  lease: Lease;
  tally: Tally;
  /** Requests sent by this run so far. */
  requests(): number;
  /** Says which window is being read now, for whoever has to read the error. */
  enter(window: Window): void;
}

/** How the work of a run ended. */
export interface Ended {
  state: RunState;
  unproven: readonly Unproven[];
}

export interface StreamReport {
  source: string;
  stream: StreamName;
  runId: string;
  state: RunState;
  tally: Tally;
  cursor: Cursor | undefined;
  /** What of the window that was asked for is not proven complete, and why. */
  unproven: readonly Unproven[];
  /** Of a backfill: what was old enough to be read of what was asked for, and the share of it that every sink has proven. */
  range?: { window: Window; certified: number };
  /** What stopped the run, if something did. */
  fault: Fault | undefined;
}

/** Does the work under a lease, and writes into `runs` what came of it, whatever came of it. */
export async function withRun(
  deps: SyncDeps,
  job: StreamJob,
  kind: RunKind,
  work: (run: OpenRun) => Promise<Ended>,
): Promise<StreamReport> {
  const { state, sinks, log } = deps;
  const { source, stream } = job;
  const tally = emptyTally();
  const asked = job.requests();
  let window: Window | undefined;
  let ended: Ended & { fault?: Fault } = { state: 'failed', unproven: [] };

  // Long work lets the short go first: a backfill never delays fresh data.
  const lease = await acquireLease(state, source, stream, deps.holder, {
    givesWay: kind !== 'sync',
    signal: deps.signal,
    ...(kind !== 'sync' && deps.onWait && { onWait: (holder) => deps.onWait?.({ source, stream, holder }) }),
  });
  const run: OpenRun = {
    id: newRunId(),
    lease,
    tally,
    requests: () => job.requests().requests - asked.requests,
    enter(next) {
      window = next;
    },
  };
  const unlessStopped = (error: unknown): undefined => {
    // Recovery: what stopped the run is what a person wants to read, not that it could not be written down as well.
    if (!ended.fault) throw error;
    log.warn({ source, stream, run: run.id, reason: String(error) }, 'the end of the run could not be written down');
  };
  const readCursor = () => lowestCursor(state, { source, stream, sinks: sinks.map((sink) => sink.name) });
  try {
    await startRun(state, { id: run.id, kind, source, stream });
    ended = await observed('run', { source, stream, kind, run: run.id }, () => work(run));
  } catch (error) {
    // Recovery: a bug goes on up; anything else ends this stream alone and is told with what was kept.
    if (!(error instanceof Fault)) throw error;
    error.at({ source, stream, ...(window && { window: describeRange(window) }) });
    // Where the database is what failed, nobody can say how far it is.
    error.kept ??= await readCursor().then(keptOf, () => COMMITTED);
    ended = { state: stateOf(error), unproven: [], fault: error };
  } finally {
    const now = job.requests();
    tally.requests = now.requests - asked.requests;
    tally.tooManyRequests = now.tooManyRequests - asked.tooManyRequests;
    await finishRun(state, run.id, ended.state, tally, ended.fault?.message ?? summaryOf(ended.unproven))
      .finally(() => lease.release())
      .catch(unlessStopped);
  }
  log.info({ source, stream, run: run.id, state: ended.state, rows: tally.read, new: tally.new }, 'run ended');
  const cursor = await readCursor().catch(unlessStopped);
  return { source, stream, runId: run.id, tally, cursor, ...ended, fault: ended.fault };
}

/** The first of them speaks for all. */
function summaryOf([first, ...others]: readonly Unproven[]): string | undefined {
  if (!first) return undefined;
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  return `not proven complete: ${describeRange(first)}: ${first.note}${more}`;
}

function stateOf(fault: Fault): RunState {
  if (fault instanceof StopStream) return 'refused';
  if (fault instanceof RetryLater) return 'incomplete';
  return fault instanceof Cancelled ? 'interrupted' : 'failed';
}

function keptOf(cursor: Cursor | undefined): string {
  if (cursor?.completeThrough !== undefined) return `everything through ${toIso(cursor.completeThrough)} is complete`;
  return cursor ? COMMITTED : 'nothing had been written yet';
}

const COMMITTED = 'every row that was committed; the next run goes on from there';
