import { isDeepStrictEqual } from 'node:util';
import { readLedgers } from '../cursor/ledger.ts';
import { createWorkspaceCheck, writeProfile } from '../cursor/sources.ts';
import type { Reader } from '../extract/reader.ts';
import type { Fault } from '../model/errors.ts';
import { type Instant, toIso } from '../model/instant.ts';
import { STREAMS } from '../model/streams.ts';
import { type Entry, provenShare, type Window } from '../model/window.ts';
import type { Sink } from '../sinks/sink.ts';
import { type Committer, createCommitter } from './committer.ts';
import { bringKnownUpToDate } from './holdings/attest.ts';
import { createLedgers, type Known, type Ledgers } from './holdings/before-run.ts';
import { keptFrom } from './holdings/retain.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { type Ended, feedsOf, type OpenRun } from './run.ts';
import { createSchemaEvolution, describeSchemaChange } from './schema-evolution.ts';
import { isReopened, type Unproven, unsettled } from './windows-to-read.ts';

interface Reading {
  since: Instant;
  sinceOf(sink: Pick<Sink, 'keepMs'>): Instant;
  cursors: Known['cursors'];
  ledgers: Pick<Ledgers, 'of'>;
  reader: Reader;
  committer: Committer;
}

/** Opens reader and committer under the lease of the run, and commits the rows read so far even if the work fails. */
export async function withReading(
  deps: SyncDeps,
  job: StreamJob,
  run: OpenRun,
  work: (reading: Reading) => Promise<Window>,
  recount: Window | boolean = deps.recount ?? false,
): Promise<Ended> {
  const { state, sinks, log } = deps;
  const { source, stream } = job;
  const { epoch } = run.lease;
  const { known, faults } = await bringKnownUpToDate(deps, job, run, recount);
  const wanted = await job.findSince(known.since, deps.signal);
  const begin = run.now();
  /** The start of the coverage in a sink: events that it does not keep are not read for it. */
  const sinceOf = (sink: Pick<Sink, 'keepMs'>): Instant => Math.max(wanted, keptFrom(sink, begin));
  const since = Math.min(...sinks.map(sinceOf));
  // A `since` that moved back opens older time, which backfills may have read already.
  const isOlder = known.since !== undefined && since < known.since;
  const entries = isOlder ? await readLedgers(state, feedsOf(deps, job), since) : known.ledgers;
  const ledgers = createLedgers(entries, run.id, run.now);
  const reopened = new Map(sinks.map(({ name }) => [name, ledgers.of(name).filter(isReopened)]));
  const reader = job.createReader(known.profile, since, { hasShown: known.hasShown });
  const committer = createRunCommitter(deps, job, run, { known, faults, since, sinceOf, ledgers, reader });
  const conclude = async (): Promise<void> => {
    await committer.flush();
    for (const sink of sinks) if (!faults.has(sink.name)) await sink.publishProgress?.({ source, stream });
    const learned = reader.profile();
    if (!isDeepStrictEqual(learned, known.profile)) await writeProfile(state, source, stream, learned);
  };
  let requested: Window;
  try {
    requested = await work({ since, sinceOf, cursors: known.cursors, ledgers, reader, committer });
  } catch (error) {
    // Recovery: what was read and proven before an error or Ctrl-C is committed if possible; the first error is reported.
    await conclude().catch((second: unknown) => {
      if (second !== error)
        log.warn({ source, stream, run: run.id, reason: String(second) }, 'the remaining rows could not be committed');
    });
    committer.close();
    throw error;
  }
  await conclude().finally(committer.close);
  const fault = committer.fault();
  if (fault) throw fault;
  // A backfill reads before `since`, and a sync may have proven more while the backfill had handed over the lease.
  const isAllOurs = run.lease.epoch === epoch && requested.start >= since;
  const others = isAllOurs ? undefined : await readLedgers(state, feedsOf(deps, job), requested.start);
  const ledgerOf = (sink: string) => others?.get(sink) ?? ledgers.of(sink);
  return endedBy(sinks, { requested, now: run.now(), reopened, ledgerOf });
}

interface Opened extends Pick<Reading, 'since' | 'sinceOf' | 'reader'> {
  known: Known;
  faults: ReadonlyMap<string, Fault>;
  ledgers: Ledgers;
}

function createRunCommitter(
  { state, sinks, log, onProgress }: SyncDeps,
  job: StreamJob,
  run: OpenRun,
  { known, faults, since, sinceOf, ledgers, reader }: Opened,
): Committer {
  const { source, stream } = job;
  const checkWorkspace = createWorkspaceCheck(state, job, known.workspace);
  const committer = createCommitter({
    sinks,
    evolver: createSchemaEvolution({
      ...{ state, stream: STREAMS[stream], source, runId: run.id, unknownFields: job.unknownFields },
      known: known.evolved,
      onSchemaChange: (change) => void run.tally.schemaChanges.push(describeSchemaChange(change)),
    }),
    base: () => ({ source, runId: run.id, epoch: run.lease.epoch, since, filters: job.filters }),
    tally: run.tally,
    serverNow: reader.serverNow,
    failed: faults,
    keptFrom: (sink) => keptFrom(sink, run.now()),
    foreign: known.foreign,
    onCommit(sink, spans) {
      ledgers.add(sink, spans);
      const through = spans.findLast((span) => span.certified)?.end;
      // A backfill reports the progress in its own range itself.
      const isSync = run.kind === 'sync' || run.kind === 're-sweep';
      const start = sinceOf(sinks.find(({ name }) => name === sink) ?? {});
      const range = { start, end: Math.max(start, reader.serverNow() - job.policy.settleMs) };
      const done = isSync ? { done: provenShare(ledgers.of(sink), range) } : {};
      const rows = run.tally.read;
      const committed = { sink, rows, ...(through !== undefined && { through: toIso(through) }) };
      log.debug({ source, stream, run: run.id, ...committed }, 'committed');
      onProgress({ source, stream, runId: run.id, rows, requests: run.requests(), through, ...done });
    },
  });
  return {
    ...committer,
    async add(slice, ...to) {
      await checkWorkspace(slice.rows);
      await committer.add(slice, ...to);
    },
  };
}

interface Closing {
  requested: Window;
  now: Instant;
  reopened: ReadonlyMap<string, readonly Entry[]>;
  ledgerOf(sink: string): readonly Entry[];
}

/** The outcome is determined by the ledger, not only by this run: a window that waits for its next try is not complete either. */
function endedBy(sinks: readonly Sink[], { requested, now, reopened, ledgerOf }: Closing): Ended {
  const open = new Map<Instant, Unproven>();
  for (const sink of sinks) {
    const kept = { ...requested, start: Math.max(requested.start, keptFrom(sink, now)) };
    const earlier = reopened.get(sink.name)?.filter(({ end }) => end <= kept.start) ?? [];
    for (const part of [...earlier, kept].flatMap((window) => unsettled(ledgerOf(sink.name), window)))
      open.set(part.start, part);
  }
  const unproven = [...open.values()].sort((a, b) => a.start - b.start);
  return { state: unproven.length > 0 ? 'incomplete' : 'done', unproven };
}
