import { type Cursor, lowestCursor } from '../cursor/cursors.ts';
import { acquireLease, type Lease } from '../cursor/leases.ts';
import type { Feeds } from '../cursor/ledger.ts';
import {
  A_BUG,
  emptyTally,
  finishRun,
  newRunId,
  type RunKind,
  type RunState,
  startRun,
  type Tally,
} from '../cursor/runs.ts';
import { Cancelled, Fault, RetryLater, StopStream } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import { observed } from '../model/log.ts';
import type { SyncName } from '../model/streams.ts';
import { describeInstant, describeRange, type Window } from '../model/window.ts';
import { type Known, readKnown } from './holdings/before-run.ts';
import type { AnyJob, SyncDeps } from './job.ts';
import { keepRunLog } from './run-log.ts';
import type { Unproven } from './windows-to-read.ts';

export interface OpenRun {
  id: string;
  kind: RunKind;
  lease: Lease;
  tally: Tally;
  /** The state of the stream when the lease was taken. */
  known: Known;
  /** Identities at that time, of sinks in the state database. */
  identities: ReadonlyMap<string, string>;
  /** The database's clock. */
  now(): Instant;
  requests(): number;
  enter(window: Window): void;
}

export interface Ended {
  state: RunState;
  unproven: readonly Unproven[];
  /** Why the run is incomplete, if not because of a window. */
  note?: string;
}

export interface StreamReport extends Ended {
  source: string;
  stream: SyncName;
  runId: string;
  tally: Tally;
  cursor: Cursor | undefined;
  /** For a backfill: the part of the requested range that was old enough to be read, and the share of it that is certified in all sinks. */
  range?: { window: Window; certified: number };
  fault: Fault | undefined;
}

/** Does the work under a lease and records its outcome in `runs`, even if it fails. */
export async function withRun(
  deps: SyncDeps,
  job: AnyJob,
  kind: RunKind,
  work: (run: OpenRun) => Promise<Ended>,
): Promise<StreamReport> {
  const { log } = deps;
  const { source, stream } = job;
  const begun = await beginRun(deps, job, kind);
  const { id, tally } = begun.run;
  let outcome: Outcome | undefined;
  let cursor: Cursor | undefined;
  try {
    outcome = await doWork(deps, job, begun, work);
  } finally {
    cursor = await endRun(deps, job, begun, outcome).catch((error: unknown) => {
      // Recovery: the error that stopped the run is reported or thrown; that it could not be recorded is secondary.
      if (outcome && !outcome.fault) throw error;
      log.warn({ source, stream, run: id, reason: String(error) }, 'the end of the run could not be recorded');
      return undefined;
    });
  }
  log.info({ source, stream, run: id, state: outcome.state, rows: tally.read, new: tally.new }, 'run ended');
  return { source, stream, runId: id, tally, cursor, ...outcome, fault: outcome.fault };
}

type Outcome = Ended & { fault?: Fault };

type BegunRun = Awaited<ReturnType<typeof beginRun>>;

/** Takes the lease, and in the same transaction records the start of the run and reads the state of the stream. */
async function beginRun(deps: SyncDeps, job: AnyJob, kind: RunKind) {
  const { state } = deps;
  const { source, stream } = job;
  const id = newRunId();
  /** The job's request counts at the start of the run. */
  const requestsBefore = job.requests();
  const identities = new Map<string, string>();
  let began: { known: Known; at: Instant; elapsed(): number } | undefined;
  const lease = await acquireLease(state, source, stream, deps.holder, {
    // A backfill waits for syncs, so that it never delays fresh data.
    givesWay: kind !== 'sync',
    signal: deps.signal,
    ...(kind !== 'sync' && deps.onWait && { onWait: (holder) => deps.onWait?.({ source, stream, holder }) }),
    async onTaken(tx) {
      const at = await startRun(tx, { id, kind, source, stream });
      const start = performance.now();
      began = { at, elapsed: () => performance.now() - start, known: await readKnown(tx, feedsOf(deps, job)) };
      for (const sink of deps.sinks)
        if (sink.isInState && sink.identify && stream !== 'links')
          identities.set(sink.name, await sink.identify(tx, { source, stream }, undefined));
    },
  });
  if (!began) throw new Error('a lease was taken, and the run did not begin');
  const { known, at, elapsed } = began;
  let window: Window | undefined;
  const run: OpenRun = {
    ...{ id, kind, lease, tally: emptyTally(), known, identities },
    now: () => at + elapsed(),
    requests: () => job.requests().requests - requestsBefore.requests,
    enter(next) {
      window = next;
    },
  };
  const soFar = () => ({ rows: run.tally.read, requests: run.requests() });
  return { run, window: () => window, requestsBefore, log: keepRunLog(state, id, deps.log, soFar) };
}

async function doWork(
  deps: SyncDeps,
  job: AnyJob,
  { run, window }: BegunRun,
  work: (run: OpenRun) => Promise<Ended>,
): Promise<Outcome> {
  const { source, stream } = job;
  const span = {
    ...{ source, stream, run: run.id },
    // A getter, because the kind is only known at the end of the run.
    get kind() {
      return run.kind;
    },
  };
  try {
    return await observed('run', span, () =>
      work(run).catch((error: unknown) => {
        deps.log.debug({ source, stream, run: run.id, err: error }, 'the run ended with this error');
        throw error;
      }),
    );
  } catch (error) {
    // Recovery: a bug is rethrown. A fault ends only this stream and is reported with what was kept.
    if (!(error instanceof Fault)) throw error;
    const at = window();
    error.at({ source, stream, ...(at && { window: describeRange(at) }) });
    // If the database failed, the progress is unknown.
    error.kept ??= await lowestCursor(deps.state, feedsOf(deps, job)).then(
      keptOf,
      () => 'every row that was committed',
    );
    return { state: stateOf(error), unproven: [], fault: error };
  }
}

/** In one transaction, so that a free lease implies that the run is recorded and the next one scheduled. No outcome means a bug. */
async function endRun(
  deps: SyncDeps,
  job: AnyJob,
  { run, requestsBefore, log }: BegunRun,
  { fault, ...ended }: Outcome = { state: 'failed', unproven: [] },
): Promise<Cursor | undefined> {
  const { tally, lease } = run;
  const now = job.requests();
  tally.requests = now.requests - requestsBefore.requests;
  tally.tooManyRequests = now.tooManyRequests - requestsBefore.tooManyRequests;
  await log.stop();
  try {
    return await deps.state.transaction(async (tx) => {
      const message = fault?.message ?? summaryOf(ended);
      await finishRun(tx, run.id, { state: ended.state, message, kind: run.kind }, tally);
      await log.write(tx);
      if (!fault && ended.state !== 'failed') await deps.onEnd?.(tx);
      await lease.release(tx);
      return lowestCursor(tx, feedsOf(deps, job));
    });
  } catch (error) {
    // Recovery: the lease is released nevertheless.
    await lease.release();
    throw error;
  }
}

/** Names the first unproven window. Only a bug leads to a failed run without a fault. */
function summaryOf({ state, note, unproven: [first, ...others] }: Ended): string | undefined {
  if (note !== undefined) return note;
  if (!first) return state === 'failed' ? A_BUG : undefined;
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  return `not proven complete: ${describeRange(first)}: ${first.note}${more}`;
}

function stateOf(fault: Fault): RunState {
  if (fault instanceof StopStream) return 'refused';
  if (fault instanceof RetryLater) return 'incomplete';
  return fault instanceof Cancelled ? 'interrupted' : 'failed';
}

function keptOf(cursor: Cursor | undefined): string {
  if (cursor?.completeThrough !== undefined)
    return `everything through ${describeInstant(cursor.completeThrough)} is complete`;
  return cursor
    ? 'the rows that were stored; none is certified yet, so the next run reads them again, and stores none twice'
    : 'nothing had been written yet';
}

export const feedsOf = ({ sinks }: Pick<SyncDeps, 'sinks'>, job: Pick<AnyJob, 'source' | 'stream'>): Feeds => {
  const { source, stream } = job;
  return { source, stream, sinks: sinks.map(({ name }) => name) };
};
