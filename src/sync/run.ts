import { isDeepStrictEqual } from 'node:util';
import { type Cursor, lowestCursor, readCursor } from '../cursor/cursors.ts';
import { acquireLease, type Lease } from '../cursor/leases.ts';
import { hasShownRows, readLedger } from '../cursor/ledger.ts';
import { emptyTally, finishRun, newRunId, type RunKind, type RunState, startRun, type Tally } from '../cursor/runs.ts';
import { acceptFilters, readProfile, writeProfile } from '../cursor/sources.ts';
import type { Reader } from '../extract/reader.ts';
import { Cancelled, Fault, RetryLater, StopStream } from '../model/errors.ts';
import { type Instant, toIso } from '../model/instant.ts';
import { observed } from '../model/log.ts';
import { STREAMS, type StreamName } from '../model/streams.ts';
import { describeRange, type Window } from '../model/window.ts';
import { type Committer, createCommitter } from './committer.ts';
import { createEvolver, describeSchemaChange } from './evolver.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { type Unproven, unsettled } from './windows-to-read.ts';

/** A run under way: it holds the lease, counts, and knows which window it is in. */
export interface OpenRun {
  id: string;
  lease: Lease;
  tally: Tally;
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
  const { state, sinks, log } = deps;
  const { source, stream } = job;
  const tally = emptyTally();
  const asked = job.requests();
  let window: Window | undefined;
  let ended: Ended & { fault?: Fault } = { state: 'failed', unproven: [] };

  // A backfill waits for syncs, so that it never delays fresh data.
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
    // Recovery: report what stopped the run; that it could not be recorded either is secondary.
    if (!ended.fault) throw error;
    log.warn({ source, stream, run: run.id, reason: String(error) }, 'the end of the run could not be written down');
  };
  const readCursor = () => lowestCursor(state, { source, stream, sinks: sinks.map((sink) => sink.name) });
  try {
    await startRun(state, { id: run.id, kind, source, stream });
    ended = await observed('run', { source, stream, kind, run: run.id }, () => work(run));
  } catch (error) {
    // Recovery: a bug is rethrown. Any other fault ends this stream alone and is reported with what was kept.
    if (!(error instanceof Fault)) throw error;
    error.at({ source, stream, ...(window && { window: describeRange(window) }) });
    // If the database itself failed, the progress is unknown.
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

/** What a sync and a backfill share: a reader, the cursors, and a committer into the sinks. */
interface Reading {
  since: Instant;
  /** By sink, as they stood when the run began; undefined where nothing was ever written. */
  cursors: ReadonlyMap<string, Cursor | undefined>;
  reader: Reader;
  committer: Committer;
}

/** Opens reader and committer under the lease of the run, and commits what was read even if the work fails. */
export async function withReading(
  deps: SyncDeps,
  job: StreamJob,
  run: OpenRun,
  work: (reading: Reading) => Promise<Window>,
): Promise<Ended> {
  const { state, sinks, log, signal, onProgress } = deps;
  const { source, stream } = job;
  for (const sink of sinks) await sink.recover?.({ source, stream, epoch: run.lease.epoch });
  if (await acceptFilters(state, { source, stream, epoch: run.lease.epoch }, job.filters)) {
    log.warn({ source, stream, filters: job.filters }, 'the filters have changed: what is complete is counted again');
  }
  const cursors = new Map<string, Cursor | undefined>();
  for (const { name: sink } of sinks) cursors.set(sink, await readCursor(state, { source, stream, sink }));
  const since = await job.findSince(earliest([...cursors.values()]), signal);
  const known = await readProfile(state, source, stream);
  const reader = job.createReader(known, since, { hasShown: await hasShownRows(state, job) });
  const committer = createCommitter({
    sinks,
    evolver: createEvolver({
      state,
      stream: STREAMS[stream],
      source,
      runId: run.id,
      unknownFields: job.unknownFields,
      onSchemaChange: (change) => void run.tally.schemaChanges.push(describeSchemaChange(change)),
    }),
    base: () => ({ source, runId: run.id, epoch: run.lease.epoch, since }),
    tally: run.tally,
    serverNow: reader.serverNow,
    onCommit: (through) => onProgress({ source, stream, rows: run.tally.read, requests: run.requests(), through }),
  });
  let asked: Window = { start: since, end: since };
  try {
    asked = await work({ since, cursors, reader, committer });
  } finally {
    // What was read and proven before an error or Ctrl-C is kept.
    await committer.flush();
    for (const sink of sinks) await sink.publishProgress?.({ source, stream });
    const profile = reader.profile();
    if (!isDeepStrictEqual(profile, known)) await writeProfile(state, source, stream, profile);
  }
  const fault = committer.fault();
  if (fault) throw fault;
  // The ledger says what came of it, not this run alone: a window that waits for its next try is not complete either.
  const open = new Map<Instant, Unproven>();
  for (const { name: sink } of sinks) {
    const entries = await readLedger(state, { source, stream, sink }, asked.start);
    for (const part of unsettled(entries, asked)) open.set(part.start, part);
  }
  const unproven = [...open.values()].sort((a, b) => a.start - b.start);
  return { state: unproven.length > 0 ? 'incomplete' : 'done', unproven };
}

const earliest = (cursors: ReadonlyArray<Cursor | undefined>): Instant | undefined => {
  const known = cursors.flatMap((cursor) => (cursor ? [cursor.since] : []));
  return known.length === 0 ? undefined : Math.min(...known);
};
