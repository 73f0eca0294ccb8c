import { isDeepStrictEqual } from 'node:util';
import { type Cursor, lowestCursor } from '../cursor/cursors.ts';
import { acquireLease, type Lease } from '../cursor/leases.ts';
import { readLedgers } from '../cursor/ledger.ts';
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
import { createWorkspaceCheck, writeProfile } from '../cursor/sources.ts';
import type { Reader } from '../extract/reader.ts';
import { Cancelled, Fault, RetryLater, StopStream } from '../model/errors.ts';
import { type Instant, toIso } from '../model/instant.ts';
import { observed } from '../model/log.ts';
import { STREAMS, type StreamName } from '../model/streams.ts';
import { describeRange, provenShare, type Window } from '../model/window.ts';
import { type Committer, createCommitter } from './committer.ts';
import { createEvolver, describeSchemaChange } from './evolver.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { bringKnownUpToDate } from './known/attest.ts';
import { createLedgers, type Known, type Ledgers, readKnown } from './known/known.ts';
import { type Unproven, unsettled } from './windows-to-read.ts';

/** A run under way: it holds the lease, counts, and knows which window it is in. */
export interface OpenRun {
  id: string;
  /** What it is so far. */
  kind: RunKind;
  lease: Lease;
  tally: Tally;
  /** As it was when the lease was taken. */
  known: Known;
  /** By sink: how those in the state's own database identified themselves then. */
  identities: ReadonlyMap<string, string>;
  /** The database's clock. */
  now(): Instant;
  /** Requests sent by this run so far. */
  requests(): number;
  /** Records which window is being read, for error messages. */
  enter(window: Window): void;
}

/** How the work of a run ended. */
interface Ended {
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

/** Does the work under a lease and records its outcome in `runs`, also when it fails. */
export async function withRun(
  deps: SyncDeps,
  job: StreamJob,
  kind: RunKind,
  work: (run: OpenRun) => Promise<Ended>,
): Promise<StreamReport> {
  const { state, log } = deps;
  const { source, stream } = job;
  const id = newRunId();
  const tally = emptyTally();
  const asked = job.requests();
  const tracks = tracksOf(deps, job);
  let window: Window | undefined;
  let ended: Ended & { fault?: Fault } = { state: 'failed', unproven: [] };
  let isBug = false;

  let began: { known: Known; at: Instant; elapsed(): number } | undefined;
  const identities = new Map<string, string>();
  // A backfill waits for syncs, so that it never delays fresh data.
  const lease = await acquireLease(state, source, stream, deps.holder, {
    givesWay: kind !== 'sync',
    signal: deps.signal,
    ...(kind !== 'sync' && deps.onWait && { onWait: (holder) => deps.onWait?.({ source, stream, holder }) }),
    async onTaken(tx) {
      const at = await startRun(tx, { id, kind, source, stream });
      const start = performance.now();
      began = { at, elapsed: () => performance.now() - start, known: await readKnown(tx, tracks) };
      for (const sink of deps.sinks)
        if (sink.isInState && sink.identify)
          identities.set(sink.name, await sink.identify(tx, { source, stream }, undefined));
    },
  });
  if (!began) throw new Error('a lease was taken, and the run did not begin');
  const { known, at, elapsed } = began;
  const run: OpenRun = {
    id,
    kind,
    lease,
    tally,
    known,
    identities,
    now: () => at + elapsed(),
    requests: () => job.requests().requests - asked.requests,
    enter(next) {
      window = next;
    },
  };
  const unlessStopped = (error: unknown): undefined => {
    // Recovery: what stopped the run is reported, or thrown already; that it could not be recorded either is secondary.
    if (!ended.fault && !isBug) throw error;
    log.warn({ source, stream, run: run.id, reason: String(error) }, 'the end of the run could not be written down');
  };
  /** All in one: whoever finds the lease free finds the run ended, and its next time set. */
  const end = (): Promise<Cursor | undefined> =>
    state.transaction(async (tx) => {
      const message = ended.fault?.message ?? summaryOf(ended);
      await finishRun(tx, id, { state: ended.state, message, kind: run.kind }, tally);
      if (!ended.fault && ended.state !== 'failed') await deps.onEnd?.(tx);
      await lease.release(tx);
      return lowestCursor(tx, tracks);
    });
  let cursor: Cursor | undefined;
  try {
    const told = {
      source,
      stream,
      run: run.id,
      // What it turns out to be is known at its end.
      get kind() {
        return run.kind;
      },
    };
    ended = await observed('run', told, () => work(run));
  } catch (error) {
    // Recovery: a bug is rethrown. Any other fault ends this stream alone and is reported with what was kept.
    isBug = !(error instanceof Fault);
    if (!(error instanceof Fault)) throw error;
    error.at({ source, stream, ...(window && { window: describeRange(window) }) });
    // If the database itself failed, the progress is unknown.
    error.kept ??= await lowestCursor(state, tracks).then(keptOf, () => COMMITTED);
    ended = { state: stateOf(error), unproven: [], fault: error };
  } finally {
    const now = job.requests();
    tally.requests = now.requests - asked.requests;
    tally.tooManyRequests = now.tooManyRequests - asked.tooManyRequests;
    cursor = await end()
      .catch(async (error: unknown) => {
        await lease.release();
        throw error;
      })
      .catch(unlessStopped);
  }
  log.info({ source, stream, run: run.id, state: ended.state, rows: tally.read, new: tally.new }, 'run ended');
  return { source, stream, runId: run.id, tally, cursor, ...ended, fault: ended.fault };
}

/** The first of them speaks for all. Only a bug fails a run without a fault. */
function summaryOf({ state, unproven: [first, ...others] }: Ended): string | undefined {
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
  if (cursor?.completeThrough !== undefined) return `everything through ${toIso(cursor.completeThrough)} is complete`;
  return cursor ? COMMITTED : 'nothing had been written yet';
}

const COMMITTED = 'every row that was committed; the next run goes on from there';

/** What a sync and a backfill share: a reader, the cursors, and a committer into the sinks. */
interface Reading {
  since: Instant;
  /** As they stood when the run began. */
  cursors: Known['cursors'];
  ledgers: Pick<Ledgers, 'of'>;
  reader: Reader;
  committer: Committer;
}

/** Opens reader and committer under the lease of the run, and commits what was read even if the work fails. */
export async function withReading(
  deps: SyncDeps,
  job: StreamJob,
  run: OpenRun,
  work: (reading: Reading) => Promise<Window>,
  recount: Window | boolean = deps.recount ?? false,
): Promise<Ended> {
  const { state, sinks, log, signal, onProgress } = deps;
  const { source, stream } = job;
  const tracks = tracksOf(deps, job);
  const { epoch } = run.lease;
  const { known: found, faults } = await bringKnownUpToDate(deps, job, run, recount);
  const { cursors, profile, hasShown, evolved, ...known } = found;
  const since = await job.findSince(known.since, signal);
  // A `since` that moved back opens older time, where backfills may have been.
  const isOlder = known.since !== undefined && since < known.since;
  const ledgers = createLedgers(isOlder ? await readLedgers(state, tracks, since) : known.ledgers, run.id, run.now);
  const reader = job.createReader(profile, since, { hasShown });
  const checkWorkspace = createWorkspaceCheck(state, job, known.workspace);
  const inner = createCommitter({
    sinks,
    evolver: createEvolver({
      state,
      stream: STREAMS[stream],
      source,
      runId: run.id,
      unknownFields: job.unknownFields,
      known: evolved,
      onSchemaChange: (change) => void run.tally.schemaChanges.push(describeSchemaChange(change)),
    }),
    base: () => ({ source, runId: run.id, epoch: run.lease.epoch, since, filters: job.filters }),
    tally: run.tally,
    serverNow: reader.serverNow,
    failed: faults,
    foreign: known.foreign,
    onCommit(sink, spans) {
      ledgers.add(sink, spans);
      const through = spans.findLast((span) => span.certified)?.end;
      // A backfill has its own range, and says itself how much of it is done.
      const isSync = run.kind === 'sync' || run.kind === 're-sweep';
      const wanted = { start: since, end: Math.max(since, reader.serverNow() - job.policy.settleMs) };
      const done = isSync ? { done: provenShare(ledgers.of(sink), wanted) } : {};
      onProgress({ source, stream, runId: run.id, rows: run.tally.read, requests: run.requests(), through, ...done });
    },
  });
  const committer: Committer = {
    ...inner,
    async add(slice, chosen) {
      await checkWorkspace(slice.rows);
      await inner.add(slice, chosen);
    },
  };
  const conclude = async (): Promise<void> => {
    await committer.flush();
    for (const sink of sinks) if (!faults.has(sink.name)) await sink.publishProgress?.({ source, stream });
    const learned = reader.profile();
    if (!isDeepStrictEqual(learned, profile)) await writeProfile(state, source, stream, learned);
  };
  let asked: Window;
  try {
    asked = await work({ since, cursors, ledgers, reader, committer });
  } catch (error) {
    // Recovery: what was read and proven before an error or Ctrl-C is kept, where that is possible; the first error is the one to report.
    await conclude().catch((second: unknown) => {
      if (second !== error)
        log.warn({ source, stream, run: run.id, reason: String(second) }, 'nor could the rest be kept');
    });
    throw error;
  }
  await conclude();
  const fault = committer.fault();
  if (fault) throw fault;
  // The ledger says what came of it, not this run alone: a window that waits for its next try is not complete either.
  const open = new Map<Instant, Unproven>();
  // A backfill reads before `since`, and while it gave way a sync may have proven more.
  const isAllOurs = run.lease.epoch === epoch && asked.start >= since;
  const others = isAllOurs ? undefined : await readLedgers(state, tracks, asked.start);
  for (const { name: sink } of sinks) {
    const entries = others?.get(sink) ?? ledgers.of(sink);
    for (const part of unsettled(entries, asked)) open.set(part.start, part);
  }
  const unproven = [...open.values()].sort((a, b) => a.start - b.start);
  return { state: unproven.length > 0 ? 'incomplete' : 'done', unproven };
}

const tracksOf = ({ sinks }: Pick<SyncDeps, 'sinks'>, { source, stream }: Pick<StreamJob, 'source' | 'stream'>) => ({
  source,
  stream,
  sinks: sinks.map(({ name }) => name),
});
