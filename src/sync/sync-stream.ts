import type { Reader, Slice, TailEnd } from '../extract/reader.ts';
import { Fault } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import { type Log, observed } from '../model/log.ts';
import type { SyncName } from '../model/streams.ts';
import { describeRange, type Entry, gaps, NOTHING_THERE, NOTHING_YET, type Window, within } from '../model/window.ts';
import type { Sink } from '../sinks/sink.ts';
import { backfillStream } from './backfill/backfill-stream.ts';
import { type BackfillRequest, refuseRange } from './backfill/unread.ts';
import type { Committer } from './committer.ts';
import { type AnyJob, isOfEvents, type StreamJob, type StreamPolicy, type SyncDeps } from './job.ts';
import { syncLinks } from './links/sync-links.ts';
import { sweepInParallel } from './parallel-sweep.ts';
import { createChainsAtOnce } from './parallelism.ts';
import { withReading } from './reading.ts';
import { type StreamReport, withRun } from './run.ts';
import { isReopened, resweeps, type Share, shared, unproven } from './windows-to-read.ts';

export type Outcome = { source: string; stream: SyncName } & (
  | { fault: undefined; report: StreamReport }
  | { fault: Fault; report: StreamReport | undefined }
);

/** Syncs all streams concurrently: while one waits for an answer, the others use the budget. A fault stops only its own stream. */
export const syncAll = (deps: SyncDeps, jobs: readonly AnyJob[]): Promise<Outcome[]> =>
  forAll(deps, jobs, (job) => syncAny(deps, job));

export const syncAny = (deps: SyncDeps, job: AnyJob): Promise<StreamReport> =>
  isOfEvents(job) ? syncStream(deps, job) : syncLinks(deps, job);

export async function backfillAll(
  deps: SyncDeps,
  jobs: readonly StreamJob[],
  request: BackfillRequest,
): Promise<Outcome[]> {
  refuseRange(deps, jobs, request.window);
  return forAll(deps, jobs, (job) => backfillStream(deps, job, request));
}

async function forAll<J extends AnyJob>(
  deps: SyncDeps,
  jobs: readonly J[],
  work: (job: J) => Promise<StreamReport>,
): Promise<Outcome[]> {
  const outcomes = await Promise.all(jobs.map((job) => outcomeOf(job, work)));
  await maintainSinks(deps);
  return outcomes;
}

async function outcomeOf<J extends AnyJob>(job: J, work: (job: J) => Promise<StreamReport>): Promise<Outcome> {
  const { source, stream } = job;
  try {
    const report = await work(job);
    const { fault } = report;
    return fault ? { source, stream, report, fault } : { source, stream, report, fault };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    // Recovery: the run of this stream did not start; the other streams continue.
    return { source, stream, report: undefined, fault: error.at({ source, stream }) };
  }
}

/** Runs due maintenance of the sinks. No run waits for it or fails because of it. */
async function maintainSinks({ sinks, log, signal }: SyncDeps): Promise<void> {
  for (const sink of sinks) {
    try {
      await maintainSink(sink, log, signal);
    } catch (error) {
      // Recovery: committed data is unaffected, and the next sync retries.
      if (error instanceof Fault) log.warn({ sink: sink.name, reason: error.describe() }, 'maintenance failed');
      else log.error({ sink: sink.name, err: error }, 'a bug ended the maintenance of this sink');
    }
  }
}

export async function maintainSink({ name: sink, maintain }: Sink, log: Log, signal: AbortSignal): Promise<void> {
  if (!maintain || signal.aborted) return;
  log.debug({ sink, done: await maintain({ isDueOnly: true, signal }) }, 'maintained');
}

export const syncStream = (deps: SyncDeps, job: StreamJob): Promise<StreamReport> =>
  withRun(deps, job, 'sync', (run) =>
    withReading(deps, job, run, async ({ since, sinceOf, cursors, ledgers, reader, committer }) => {
      const { log, signal } = deps;
      const { source, stream, policy } = job;
      const sinks = deps.sinks.map((sink) => ({
        sink: sink.name,
        since: sinceOf(sink),
        completeThrough: floorOf(ledgers.of(sink.name), cursors.get(sink.name)?.completeThrough),
        newestSeen: cursors.get(sink.name)?.newestSeen,
        ledger: () => ledgers.of(sink.name),
      }));
      const onWindow: Work['onWindow'] = (window, lane) => {
        log.debug({ source, stream, window: describeRange(window) }, 'sweeping');
        run.enter(window);
        if (lane === 'repair') run.kind = 're-sweep';
      };
      const chainsAtOnce = createChainsAtOnce(job.requestsPerSecond, reader);
      return bringUpToDate({ policy, since, sinks, reader, committer, signal, chainsAtOnce, onWindow });
    }),
  );

/** If windows were reopened, the watermark fell back to before them; new rows are still read from the end of the last certified window. */
const floorOf = (ledger: readonly Entry[], completeThrough: Instant | undefined): Instant | undefined =>
  ledger.some(isReopened) ? ledger.findLast(({ certified }) => certified)?.end : completeThrough;

interface SinkProgress {
  sink: string;
  /** Later than the stream's if the sink does not keep older events. */
  since?: Instant;
  completeThrough: Instant | undefined;
  newestSeen: Instant | undefined;
  ledger(): readonly Entry[];
}

interface Work {
  policy: StreamPolicy;
  since: Instant;
  sinks: readonly SinkProgress[];
  reader: Reader;
  committer: Pick<Committer, 'add' | 'flush'>;
  signal: AbortSignal;
  chainsAtOnce(): number;
  /** A window is split only if each half is expected to have this many pages. */
  pagesWorth?: number;
  onWindow(window: Window, lane: 'fresh' | 'repair'): void;
}

/** Reads the tail first, so that new rows arrive at once, then all unproven windows. Independent of database and queue. */
export async function bringUpToDate(work: Work): Promise<Window> {
  const { reader, committer } = work;
  const tail = await observed('window', { lane: 'fresh', tail: true }, async () => {
    const end = await deliverTail(work);
    await committer.flush();
    return end;
  });
  await sweepInParallel(windowsToRead(work, tail), {
    ...work,
    profile: reader.profile,
    sweep: (window, { lane }, signal) => {
      work.onWindow(window, lane);
      // Repairs start with evidence of their own, as they must be able to refute what the tail has shown.
      return reader.sweep({ window, after: lane === 'repair' ? undefined : tail, lane, signal });
    },
    take: (slice, { sinks }, chain) => committer.add(slice, sinks, chain),
  });
  await committer.flush();
  return settledWindow(work, tail);
}

/** The part of the requested time that is old enough to be certified. */
const settledWindow = ({ since, policy }: Work, { serverNow }: TailEnd): Window => ({
  start: since,
  end: Math.max(since, serverNow - policy.settleMs),
});

/** Delivers new rows. If they reach back to the watermark, that certifies the time between, and the poll has nothing else to read. */
async function deliverTail(work: Work): Promise<TailEnd> {
  const { policy, since, sinks, reader, committer, signal } = work;
  // Reads back to the watermark of the sink that is furthest ahead. Earlier windows of other sinks are read only for them.
  const floor = furthest(sinks.map(({ completeThrough }) => completeThrough));
  const lookback = floor === undefined ? undefined : Math.max(since, floor - policy.lookbackMs);
  const newestSeen = furthest(sinks.map(({ newestSeen }) => newestSeen));
  // Windows found empty only matter while the stream has never shown a row.
  const known = { newestSeen, empty: newestSeen === undefined ? foundEmpty(sinks) : [] };
  const slices = reader.tail({ floor, lookback, since, known, lane: 'fresh', signal });
  let held: Slice | undefined;
  for (;;) {
    const next = await slices.next().catch(async (error: unknown) => {
      if (held) await committer.add(held);
      throw error;
    });
    if (!next.done) {
      if (held) await committer.add(held);
      held = next.value;
      continue;
    }
    const { certified, isOnePage } = next.value;
    // If the stream has shown rows before, an answer without rows is an ordinary gap.
    const isEmpty = next.value.isEmpty && newestSeen === undefined;
    if (held && certified && isOnePage) {
      // A single page is a snapshot: a row of the sink that is not on it has vanished. Between several pages, rows may have moved.
      const { start, end } = certified;
      await committer.add({ ...held, window: { start, end }, certified, whole: held.rejected.length === 0 });
    } else {
      if (held) await committer.add(held);
      if (certified) {
        const { start, end } = certified;
        const note = isEmpty ? { note: NOTHING_THERE } : {};
        await committer.add({ window: { start, end }, certified, ...note, rows: [], rejected: [] });
      }
    }
    const settled = settledWindow(work, next.value);
    const open = { start: Math.max(settled.start, certified?.end ?? floor ?? since), end: settled.end };
    if (isEmpty && open.start < open.end) {
      const note = reader.doubt() ?? NOTHING_YET;
      await committer.add({ window: open, certified: undefined, note, rows: [], rejected: [] });
    }
    return { ...next.value, isEmpty };
  }
}

const foundEmpty = (sinks: readonly SinkProgress[]): Window[] =>
  sinks.flatMap(({ ledger }) => ledger()).filter(({ note }) => note === NOTHING_YET);

const furthest = (instants: ReadonlyArray<Instant | undefined>): Instant | undefined => {
  const known = instants.filter((at) => at !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
};

/** What to read after the tail: unproven windows, and those that are due for another read, each with its sinks. */
function windowsToRead(work: Work, tail: TailEnd): Array<Share & { lane: 'fresh' | 'repair' }> {
  if (tail.isEmpty) return [];
  const needs = work.sinks.map((progress) => ({ sink: progress.sink, ...neededBy(progress, work, tail) }));
  return (['fresh', 'repair'] as const).flatMap((lane) =>
    shared(needs.map((need) => ({ sink: need.sink, windows: need[lane] }))).map((share) => ({ ...share, lane })),
  );
}

function neededBy(
  progress: SinkProgress,
  { policy, since: streamSince }: Work,
  { serverNow, certified }: TailEnd,
): Record<'fresh' | 'repair', Window[]> {
  const { since = streamSince, completeThrough: floor = since, newestSeen } = progress;
  const whole = { start: since, end: serverNow - policy.settleMs };
  const entries = progress.ledger();
  // The stream was empty and now shows rows: windows that were found empty, even certified ones, may have rows as well.
  const wasEmpty =
    newestSeen === undefined || entries.some(({ note }) => note === NOTHING_YET || note === NOTHING_THERE);
  const start = wasEmpty ? since : Math.max(since, floor - policy.lookbackMs);
  // The clock of a service that reports whole seconds may be behind the watermark.
  const again = { start, end: Math.max(start, Math.min(floor, whole.end)) };
  // The tail has nearly always just read all of `again`.
  const isRead = certified && certified.start <= again.start && again.end <= certified.end;
  const reopened = entries.filter(isReopened);
  const open = unproven(entries, whole, isRead ? undefined : again, serverNow);
  // Reopened windows of backfills before `since` are read again as well.
  const earlier = { start: Math.min(since, ...reopened.map((entry) => entry.start)), end: since };
  const lost = [...unproven(entries, earlier, undefined, serverNow), ...open];
  return {
    fresh: open.flatMap((window) => gaps(reopened, window)),
    repair: [...lost.flatMap((window) => within(reopened, window)), ...resweeps(entries, serverNow, policy.resweepMs)],
  };
}
