import { lockCertified, reopen, writeForeign } from '../../cursor/holdings/attestations.ts';
import { recountRows } from '../../cursor/holdings/window-rows.ts';
import { checkFence, type Lease, withLease } from '../../cursor/leases.ts';
import { Cancelled, ConfigError, Fault } from '../../model/errors.ts';
import { toIso } from '../../model/instant.ts';
import { STREAMS } from '../../model/streams.ts';
import type { Window } from '../../model/window.ts';
import { abilityOf, countsIn, type Sink } from '../../sinks/sink.ts';
import { backfillStream } from '../backfill/backfill-stream.ts';
import { inPhases } from '../estimate.ts';
import type { StreamJob, SyncDeps } from '../job.ts';
import { joined, rangeOf } from '../windows-to-read.ts';
import { createVerifyResult, isClean, type SinkResult, totalOf, type VerifyResult } from './comparison.ts';
import { THE_SERVICE, verifyBetween, verifyStream } from './verify.ts';

/** `after` is the comparison after the repair; absent if nothing differed. `fault` is the error that stopped comparison or repair. */
export interface Repair {
  before: VerifyResult;
  after?: VerifyResult;
  fault?: Fault;
}

/** Windows that still differ lose their certificate. A refusal by the service is a result, so that other jobs are still compared. */
export async function verifyJob(
  deps: SyncDeps,
  job: StreamJob,
  window: Window,
  { repair = false, between }: { repair?: boolean; between?: readonly [Sink, Sink] | undefined },
): Promise<Repair> {
  const { source, stream } = job;
  let before: VerifyResult | undefined;
  try {
    const phase = inPhases(deps.onProgress);
    const first = { ...deps, onProgress: phase(repair ? SHARES.before : 1) };
    before = between ? await verifyBetween(first, job, window, between) : await verifyStream(first, job, window);
    const done = repair ? await repairStream(deps, job, before, phase) : { before };
    // If two sinks differ, it is unknown which one is right.
    if (!between) await refute(deps, job, done.after ?? before);
    return done;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const fault = error.at({ source, stream });
    if (fault instanceof Cancelled || fault instanceof ConfigError) throw fault;
    // Recovery: the comparison before the repair is returned; if that failed, an empty result that says why.
    if (before) return { before, fault };
    const { name: against } = between?.[0] ?? { name: THE_SERVICE };
    const nothing = createVerifyResult({ source, stream, window, against, sinks: [] }).close(0);
    return { before: { ...nothing, doubts: [{ ...window, note: fault.message }] }, fault };
  }
}

/** The phases of a repair as shares of its progress. */
const SHARES = { before: 0.45, repair: 0.1, after: 0.45 };

/** Corrects row counts, reads again what differs, and compares again, because only the comparison proves the repair. */
export async function repairStream(
  deps: SyncDeps,
  job: StreamJob,
  before: VerifyResult,
  phase = inPhases(deps.onProgress),
): Promise<Repair> {
  const { source, stream } = job;
  const removeMoved = async (): Promise<void> => {
    for (const sink of deps.sinks) await sink.removeMoved?.(STREAMS[stream], source, before.window);
  };
  if (isClean(before)) {
    await removeMoved();
    return { before };
  }
  for (const { sink: name, foreign } of before.sinks.filter((one) => one.foreign.length > 0)) {
    const sink = deps.sinks.find((one) => one.name === name);
    if (sink) await abilityOf(sink, 'removeForeign')(STREAMS[stream], source, foreign);
  }
  // Certified windows with wrong row counts are reopened by the run that reads them again; counts of other windows are corrected here.
  for (const sink of deps.sinks.filter(({ attest }) => attest)) {
    const feed = { source, stream, sink: sink.name };
    const count = countsIn(sink, STREAMS[stream], source);
    await deps.state.transaction((tx) => recountRows(tx, feed, before.window, count, { isOpenOnly: true }));
  }
  const windows = joined(
    before.sinks.flatMap(({ windows, foreign, miscounted }) => [...windows, ...foreign, ...miscounted]),
  );
  for (const window of windows) {
    const onProgress = phase(SHARES.repair / windows.length);
    const { fault } = await backfillStream({ ...deps, onProgress }, job, { window, force: true }, 'repair');
    if (fault) return { before, fault };
  }
  await removeMoved();
  const after = await verifyStream({ ...deps, onProgress: phase(SHARES.after) }, job, before.window);
  return { before, after };
}

/** Whether every sink holds what it should, and the whole window could be compared. */
export function isSound({ before, after, fault }: Repair): boolean {
  const last = after ?? before;
  return !fault && isClean(last) && last.doubts.length === 0;
}

/** Reopens windows that differ, for the next sync to read. Takes the lease, so that no run certifies them by outdated knowledge. */
async function refute(deps: SyncDeps, job: StreamJob, result: VerifyResult): Promise<void> {
  if (isClean(result)) return;
  const { state, sinks, holder, signal, onWait } = deps;
  const { source, stream } = job;
  const waits = onWait && { onWait: (other: string) => onWait({ source, stream, holder: other }) };
  const refuteAll = async ({ epoch }: Lease): Promise<void> => {
    for (const found of result.sinks) {
      const sink = sinks.find(({ name }) => name === found.sink);
      if (sink) await refuteIn(deps, sink, found, { source, stream, epoch });
    }
  };
  await withLease(state, source, stream, holder, refuteAll, { givesWay: true, signal, ...waits });
}

async function refuteIn(
  { state }: SyncDeps,
  sink: Sink,
  { refuted, miscounted, foreign }: SinkResult,
  leased: { source: string; stream: StreamJob['stream']; epoch: number },
): Promise<void> {
  const { source, stream } = leased;
  const feed = { source, stream, sink: sink.name };
  const windows = await lockCertified(state, feed, [...refuted, ...miscounted, ...foreign]);
  // Outside of the transaction: the sink may need a connection of the same pool.
  const held = sink.attest && windows.length > 0 ? await countsIn(sink, STREAMS[stream], source)(windows) : [];
  if (windows.length > 0) await sink.releaseKeys?.(STREAMS[stream], source, windows);
  const note = 'verify found that it does not hold what the service has';
  await state.transaction(async (tx) => {
    await checkFence(tx, leased);
    await reopen(
      tx,
      feed,
      windows.map((window, i) => ({ ...window, rows: held[i] ?? window.rows, note })),
    );
    if (foreign.length > 0) await writeForeign(tx, feed, foreign, foreign);
  });
  await sink.publishProgress?.({ source, stream }, true);
}

/** The result before and after the repair, and the error that stopped it. */
export const reportRepair = ({ before, after, fault }: Repair) => ({
  ...reportResult(before),
  repaired: after ? reportResult(after) : null,
  error: fault ? { message: fault.message, kept: fault.kept ?? null, next: fault.next ?? null } : null,
});

export type RepairReport = ReturnType<typeof reportRepair>;
export type VerifyReport = ReturnType<typeof reportResult>;

/** The result as JSON. Times are ISO texts; examples name events and columns, never values. */
const reportResult = ({ window, sinks, doubts, ...result }: VerifyResult) => ({
  ...result,
  ...rangeOf(window),
  sinks: sinks.map(reportSink),
  notComparable: doubts.map((doubt) => ({ ...rangeOf(doubt), note: doubt.note })),
});

const reportSink = (result: SinkResult) => ({
  sink: result.sink,
  ...totalOf(result),
  days: result.days.map(({ day, ...counts }) => ({ day: toIso(day).slice(0, 10), ...counts })),
  neverRead: result.neverRead.map(rangeOf),
  miscounted: result.miscounted.map(({ ledger, sink, ...window }) => ({ ...rangeOf(window), ledger, sink })),
  foreign: result.foreign.map(({ what, ...window }) => ({ ...rangeOf(window), what })),
  examples: result.examples.map((example) => ({ ...example, at: toIso(example.at) })),
});
