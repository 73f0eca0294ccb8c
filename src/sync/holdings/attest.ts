import { isDeepStrictEqual } from 'node:util';
import type { Queryable } from '../../cursor/database/index.ts';
import {
  type Attestation,
  certifiedBefore,
  type ForeignRows,
  lockCertified,
  type Reopened,
  reopen,
  retryNow,
  writeAttestation,
  writeForeign,
} from '../../cursor/holdings/attestations.ts';
import { checkFence } from '../../cursor/leases.ts';
import { type Feed, SINK_CHANGED, type Span } from '../../cursor/ledger.ts';
import { changeFilters } from '../../cursor/sources.ts';
import { Fault } from '../../model/errors.ts';
import type { Instant } from '../../model/instant.ts';
import { STREAMS } from '../../model/streams.ts';
import { counted, DAY_MS, describeInstant, describeRange, duration, holds, type Window } from '../../model/window.ts';
import { type Asked, abilityOf, type Held, type Refilled, type Sink, UNSETTLED } from '../../sinks/sink.ts';
import type { StreamJob, SyncDeps } from '../job.ts';
import { feedsOf, type OpenRun } from '../run.ts';
import { type Known, readKnown } from './before-run.ts';
import { countOn, MOST_WINDOWS } from './count.ts';
import { retain } from './retain.ts';

interface Question {
  known: Known;
  epoch: number;
  now: Instant;
  /** Identities of sinks in the state database, read when the lease was taken. */
  identities: ReadonlyMap<string, string>;
  /** Counts all rows of this window, or all rows, in this run. */
  recount: Window | boolean;
}

/**
 * Checks what every sink holds before anything is read: a window is complete only while its rows are in the sink. A sink with an unchanged
 * identity is trusted for a day; if it was replaced or restored, its rows are counted, spread over several runs. Windows whose counts
 * differ from the ledger are reopened, and this run reads them again.
 * Recovery, new filters and changed sinks modify the state. A sink that cannot be reached is skipped: nothing may be certified in it.
 */
export async function bringKnownUpToDate(
  deps: SyncDeps,
  job: StreamJob,
  run: OpenRun,
  recount: Window | boolean,
): Promise<{ known: Known; faults: Map<string, Fault> }> {
  const { state, sinks, log } = deps;
  const { source, stream, filters } = job;
  const lease = { source, stream, epoch: run.lease.epoch };
  const faults = new Map<string, Fault>();
  const eachSink = async (work: (sink: Sink) => Promise<boolean>): Promise<boolean> => {
    let isStale = false;
    for (const sink of sinks.filter(({ name }) => !faults.has(name))) {
      try {
        isStale = (await work(sink)) || isStale;
      } catch (error) {
        // Recovery: the other sinks continue. The fault is reported at the end, or thrown now if no sink is left.
        if (!(error instanceof Fault)) throw error;
        error.kept ??=
          'the ledger as it is: nothing was certified, and nothing reopened, in a sink that cannot be reached';
        faults.set(sink.name, sinks.length > 1 ? error.at({ sink: sink.name }) : error);
        if (faults.size === sinks.length) throw error;
      }
    }
    return isStale;
  };
  const readAgain = (): Promise<Known> => readKnown(state, feedsOf(deps, job));
  const identities = new Map(run.identities);
  let isStale = await eachSink(async (sink) => {
    const isRecovered = (await sink.recover?.(lease)) ?? false;
    // Recovery has changed the identity that was read when the lease was taken.
    if (isRecovered) identities.delete(sink.name);
    return isRecovered;
  });
  if (await changeFilters(state, lease, { from: run.known.filters, to: filters })) {
    log.warn({ source, stream, filters }, 'the filters have changed: what is complete is counted again');
    isStale = true;
  }
  let known = isStale ? await readAgain() : run.known;
  const isPruned = await eachSink(async (sink) => {
    if (!(await retain(deps, job, sink, { known, epoch: lease.epoch, now: run.now() }))) return false;
    // Deleting our files and partitions has changed the identity.
    identities.delete(sink.name);
    await sink.publishProgress?.(job, true);
    return true;
  });
  if (isPruned) known = await readAgain();
  const question = { known, epoch: lease.epoch, now: run.now(), identities, recount };
  const isChanged = await eachSink(async (sink) => {
    const { lost, isChanged } = await attestSink(deps, job, sink, question);
    if (lost.length > 0) {
      announce(deps, job, sink, lost);
      await sink.publishProgress?.(job, true);
    }
    return isChanged;
  });
  return { known: isChanged ? await readAgain() : known, faults };
}

interface Loss extends Reopened {
  written: number;
}

async function attestSink(
  deps: SyncDeps,
  job: StreamJob,
  sink: Sink,
  question: Question,
): Promise<{ lost: Loss[]; isChanged: boolean }> {
  if (!sink.identify || !sink.attest) return UNCHANGED;
  const { known, identities, recount, now } = question;
  const { state } = deps;
  const { source, stream } = job;
  const last = known.cursors.get(sink.name)?.lastCommit;
  const identify = (db: Queryable): Promise<string> => abilityOf(sink, 'identify')(db, { source, stream }, last);
  const first = identities.get(sink.name) ?? (await identify(state));
  const before = known.attestations.get(sink.name);
  const foreign = known.foreign.get(sink.name) ?? [];
  const isSame = before?.identity === first && !first.endsWith(UNSETTLED);
  const isDue = !isSame || before.next !== undefined || (before.countedAt ?? 0) < now - DAY_MS;
  if (!recount && !isDue && foreign.length === 0) return UNCHANGED;
  // Once per count, not for each of its parts.
  if (!isSame || recount === true || (isDue && before.next === undefined)) {
    const isThorough = recount === true || (!isSame && before?.identity.endsWith(UNSETTLED) === false);
    for (const one of (await sink.refillEntities?.(source, isThorough)) ?? []) announceRefilled(deps, job, sink, one);
  }
  const identity = isSame ? first : await identify(state);
  const feed = { source, stream, sink: sink.name };
  const ask = async (windows: readonly Asked[]): Promise<Held[]> =>
    windows.length === 0 ? [] : ((await sink.attest?.(STREAMS[stream], source, windows)) ?? []);
  const { suspects, next } = await findSuspects(state, sink, feed, { known, recount, ask, isSame, isDue });
  // Outside of the transaction below: the sink may need a connection of the same pool.
  const suspected = suspects.length === 0 ? [] : await lockCertified(state, feed, suspects);
  const found = await ask(suspected);
  const still = await ask(foreign.map((window) => ({ ...window, rows: 0 })));
  const differing = suspected.filter(({ rows }, i) => found[i]?.rows !== rows || found[i]?.foreign !== undefined);
  // Before the windows are reopened: if the process stops here, they are still certified, and the next run finds them again.
  if (differing.length > 0) await sink.releaseKeys?.(STREAMS[stream], source, differing);
  return state.transaction(async (tx) => {
    await checkFence(tx, { source, stream, epoch: question.epoch });
    // Windows that a commit has changed since are left to the next run.
    const locked = suspected.length === 0 ? [] : await lockCertified(tx, feed, suspected);
    const same = suspected.flatMap((window, i) => (locked.some((one) => isDeepStrictEqual(one, window)) ? [i] : []));
    const certified = same.flatMap((i) => suspected[i] ?? []);
    const held = same.flatMap((i) => found[i] ?? []);
    const table = sink.tableOf?.(stream) ?? sink.place;
    const lost = certified.flatMap((window, i) => lossOf(window, held[i], { table, isSame, since: before?.countedAt }));
    if (lost.length > 0) await reopen(tx, feed, lost);
    const checked = [...certified, ...foreign];
    if (checked.length > 0)
      await writeForeign(tx, feed, checked, [...foreignIn(certified, held), ...foreignIn(foreign, still)]);
    // With `next`, the next run continues to count the rest of a changed sink.
    await writeAttestation(tx, feed, identity.endsWith(UNSETTLED) ? await identify(tx) : identity, next);
    const resolved = foreign.filter((_, i) => still[i]?.foreign === undefined);
    if (resolved.length > 0) await retryNow(tx, feed, resolved);
    return { lost, isChanged: lost.length + resolved.length > 0 };
  });
}

interface Count extends Pick<Question, 'known' | 'recount'> {
  ask: (windows: readonly Asked[]) => Promise<Held[]>;
  isSame: boolean;
  isDue: boolean;
}

/** Returns windows whose rows may differ from the ledger, and where the next run continues the count. */
async function findSuspects(
  state: SyncDeps['state'],
  sink: Sink,
  feed: Feed,
  { known, recount, ask, isSame, isDue }: Count,
): Promise<{ suspects: Window[]; next: Attestation['next'] }> {
  const windows = (at: Instant | undefined) => certifiedBefore(state, feed, { before: at, most: MOST_WINDOWS });
  const all = Number.POSITIVE_INFINITY;
  const emptied = isSame ? [] : await findEmptied(state, sink, feed, known);
  const rows = recount === true ? all : (sink.countedRows ?? all);
  const from = isSame && recount !== true ? known.attestations.get(sink.name)?.next : undefined;
  const { suspects, next } = isDue || recount === true ? await countOn(ask, { windows, from, rows }) : NOTHING;
  const requested =
    typeof recount === 'object'
      ? await countOn(ask, { windows, from: undefined, rows: all, within: recount })
      : NOTHING;
  return { suspects: [...emptied, ...suspects, ...requested.suspects], next };
}

/** Returns nothing if the sink holds exactly the rows that were written. */
function lossOf(
  window: Window & { rows: number },
  { rows, foreign }: Held = { rows: 0 },
  { table, isSame, since }: { table: string; isSame: boolean; since: Instant | undefined },
): Loss[] {
  if (rows === window.rows && foreign === undefined) return [];
  const counted = `${table} holds ${rows} rows of ${describeRange(window)} where ${window.rows} were written`;
  const after = since === undefined ? '' : ` after ${describeInstant(Math.floor(since / 60_000) * 60_000)}`;
  const lacking = isSame ? 'rows were deleted' : 'it was emptied, restored or replaced';
  const why = rows > window.rows ? 'somebody added rows' : lacking;
  return [{ ...window, rows, written: window.rows, note: foreign ?? `${counted}; ${why}${after}` }];
}

export const foreignIn = (windows: readonly Window[], found: readonly Held[]): ForeignRows[] =>
  windows.flatMap(({ start, end }, i) => {
    const what = found[i]?.foreign;
    return what === undefined ? [] : [{ start, end, what }];
  });

const UNCHANGED = { lost: [], isChanged: false };
const NOTHING = { suspects: [], next: undefined };

/** For a replaced sink: windows that have rows in the ledger but none in the sink, and the one whose newest row is missing. */
async function findEmptied(state: SyncDeps['state'], sink: Sink, feed: Feed, known: Known): Promise<Window[]> {
  if (!sink.glance) return [];
  const all = await certifiedBefore(state, feed, { before: undefined, most: 100_000 });
  const filled = all.filter(({ rows }) => rows > 0);
  const newest = known.cursors.get(sink.name)?.newestSeen;
  const instant = newest === undefined ? [] : [{ start: newest, end: newest + 1 }];
  const hasRows = await sink.glance(STREAMS[feed.stream], feed.source, [...filled, ...instant]);
  const isNewestGone = newest !== undefined && hasRows.at(-1) === false;
  return filled.filter((window, i) => !hasRows[i] || (isNewestGone && holds(window, newest)));
}

/** Announced in advance, because reading the windows again may take hours. */
function announce(deps: SyncDeps, job: StreamJob, sink: Sink, lost: readonly Loss[]): void {
  const rows = lost.reduce((sum, { written }) => sum + written, 0);
  const requests = Math.ceil(rows / 1000);
  const took = duration(Math.ceil(requests / job.requestsPerSecond));
  const windows = counted(lost.length, 'window');
  const text = `${lost[0]?.note}. ${windows} ${lost.length === 1 ? 'is' : 'are'} read again: about ${counted(rows, 'row')}, ${counted(requests, 'request')}, ${took}`;
  notify(deps, job, text, { sink: sink.name, windows: lost.length, rows });
}

const announceRefilled = (deps: SyncDeps, job: StreamJob, { name: sink }: Sink, { table, rows }: Refilled): void =>
  notify(
    deps,
    job,
    `${table} was missing ${counted(rows, 'row')} that events refer to: emptied, dropped or deleted. They were restored from the events`,
    { sink, table, rows },
  );

/** Logged as a warning only if `onNotice` does not show it to a user; the log of the run has it in either case. */
function notify({ log, onNotice }: SyncDeps, { source, stream }: StreamJob, text: string, details: object): void {
  onNotice?.({ source, stream, text });
  log[onNotice ? 'debug' : 'warn']({ source, stream, ...details }, text);
}

/** Splits the spans: parts with rows of another writer are stored but not certified. */
export function uncertifyForeign(spans: readonly Span[], { start, end, what }: ForeignRows): Span[] {
  return spans.flatMap((span) => {
    if (!span.certified || span.start >= end || span.end <= start) return [span];
    const [from, to] = [Math.max(span.start, start), Math.min(span.end, end)];
    const part = (window: Window): Span => ({ ...span, ...window, rows: 0 });
    return [
      part({ start: span.start, end: from }),
      { ...part({ start: from, end: to }), certified: undefined, note: `${SINK_CHANGED}${what}` },
      part({ start: to, end: span.end }),
    ].filter((one) => one.start < one.end);
  });
}
