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
  /** As it was when the lease was taken. */
  known: Known;
  /** By sink: how those in the state's own database identified themselves then. */
  identities: ReadonlyMap<string, string>;
  /** The database's clock. */
  now(): Instant;
  requests(): number;
  enter(window: Window): void;
}

export interface Ended {
  state: RunState;
  unproven: readonly Unproven[];
  /** Why it is not done, where that is about no window. */
  note?: string;
}

export interface StreamReport extends Ended {
  source: string;
  stream: SyncName;
  runId: string;
  tally: Tally;
  cursor: Cursor | undefined;
  /** Of a backfill: what was old enough to be read of what was asked for, and the share of it that every sink has proven. */
  range?: { window: Window; certified: number };
  fault: Fault | undefined;
}

/** Does the work under a lease and records its outcome in `runs`, also when it fails. */
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
      // Recovery: what stopped the run is reported, or thrown already; that it could not be recorded either is secondary.
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

/** Takes the lease; in the same transaction the run begins, and what is known of the stream is read. */
async function beginRun(deps: SyncDeps, job: AnyJob, kind: RunKind) {
  const { state } = deps;
  const { source, stream } = job;
  const id = newRunId();
  /** What the source had been asked when it began. */
  const asked = job.requests();
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
    requests: () => job.requests().requests - asked.requests,
    enter(next) {
      window = next;
    },
  };
  const soFar = () => ({ rows: run.tally.read, requests: run.requests() });
  return { run, window: () => window, asked, log: keepRunLog(state, id, deps.log, soFar) };
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
    // What it turns out to be is known at its end.
    get kind() {
      return run.kind;
    },
  };
  try {
    return await observed('run', span, () =>
      work(run).catch((error: unknown) => {
        deps.log.debug({ source, stream, run: run.id, err: error }, 'this ended the run');
        throw error;
      }),
    );
  } catch (error) {
    // Recovery: a bug is rethrown. Any other fault ends this stream alone and is reported with what was kept.
    if (!(error instanceof Fault)) throw error;
    const at = window();
    error.at({ source, stream, ...(at && { window: describeRange(at) }) });
    // If the database itself failed, the progress is unknown.
    error.kept ??= await lowestCursor(deps.state, feedsOf(deps, job)).then(
      keptOf,
      () => 'every row that was committed',
    );
    return { state: stateOf(error), unproven: [], fault: error };
  }
}

/** All in one transaction: whoever finds the lease free finds the run ended, and its next time set. Without an outcome, a bug ended it. */
async function endRun(
  deps: SyncDeps,
  job: AnyJob,
  { run, asked, log }: BegunRun,
  { fault, ...ended }: Outcome = { state: 'failed', unproven: [] },
): Promise<Cursor | undefined> {
  const { tally, lease } = run;
  const now = job.requests();
  tally.requests = now.requests - asked.requests;
  tally.tooManyRequests = now.tooManyRequests - asked.tooManyRequests;
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
    // Recovery: the stream is free all the same.
    await lease.release();
    throw error;
  }
}

/** The first of them speaks for all. Only a bug fails a run without a fault. */
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
