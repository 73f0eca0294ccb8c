import { randomUUID } from 'node:crypto';
import type { ForeignRows } from '../cursor/holdings/attestations.ts';
import type { Advance, Span } from '../cursor/ledger.ts';
import { countCommit, type Tally } from '../cursor/runs.ts';
import type { Slice } from '../extract/reader.ts';
import { Fault } from '../model/errors.ts';
import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import { observed } from '../model/log.ts';
import { type Memory, processMemory } from '../model/memory.ts';
import type { Stream } from '../model/streams.ts';
import { type Batch, describeColumns, ShapeChanged, type Sink } from '../sinks/sink.ts';
import { uncertifyForeign } from './holdings/attest.ts';
import { type Arrived, batchOf, busiestReader, bytesOf, type Pending, rowsIn, startingAt, sumOf } from './pending.ts';
import type { SchemaEvolution } from './schema-evolution.ts';

export type Committer = ReturnType<typeof createCommitter>;

interface CommitterOptions {
  sinks: readonly Sink[];
  evolver: SchemaEvolution;
  /** The part of every advance that is common to the run. A function, because the epoch changes when the lease is handed over. */
  base: () => RunBase;
  tally: Tally;
  serverNow: () => Instant;
  failed?: ReadonlyMap<string, Fault>;
  /** The sink keeps no events before this. By the database's clock, as for all runs, so that it never moves back. */
  keptFrom?: (sink: Sink) => Instant;
  /** By sink: windows with rows of another writer, which cannot be certified by reading them again. */
  foreign?: ReadonlyMap<string, readonly ForeignRows[]>;
  onCommit: (sink: string, spans: readonly Span[]) => void;
  memory?: Memory;
}

/** Each sink has its own batches and cursor. A failed one is reported at the end; the others still get all rows that are read. */
export function createCommitter(options: CommitterOptions) {
  const { sinks, tally, memory = processMemory } = options;
  const committers = new Map<string, SinkCommitter>(
    sinks.map((sink, i) => {
      const foreign = options.foreign?.get(sink.name) ?? [];
      return [sink.name, createSinkCommitter({ ...options, sink, foreign, isFirst: i === 0 })];
    }),
  );
  const failed = new Map<string, Fault>(options.failed);
  /** Releases the memory of slices that are not committed in every sink yet. */
  const releases = new Set<() => void>();

  const reserve = (bytes: number): (() => void) => {
    const free = memory.keep(bytes);
    const release = (): void => {
      if (releases.delete(release)) free();
    };
    releases.add(release);
    return release;
  };

  const each = async (
    chosen: ReadonlySet<string> | undefined,
    work: (committer: SinkCommitter) => Promise<void>,
  ): Promise<void> => {
    const all = [...committers].filter(([name]) => !failed.has(name) && (!chosen || chosen.has(name)));
    // All sinks in parallel: a concurrent flush must find a slice in the batches of all sinks or of none.
    const outcomes = await Promise.allSettled(all.map(([, committer]) => work(committer)));
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') continue;
      const [name, error] = [all[i]?.[0] ?? '', outcome.reason];
      // Recovery: the cursor of this sink stays where it is. If all sinks have failed, reading on makes no sense.
      if (!(error instanceof Fault)) throw error;
      failed.set(name, sinks.length > 1 ? error.at({ sink: name }) : error);
      if (failed.size === committers.size) throw error;
    }
  };

  return {
    /** Adds to the chosen sinks, or to all. Slices of one reader are committed in the order in which they were added. */
    async add(slice: Slice, chosen?: ReadonlySet<string>, reader?: unknown): Promise<void> {
      const bytes = bytesOf(slice.rows);
      const release = reserve(bytes);
      let holders = 0;
      const onEnd = (): void => {
        if (--holders === 0) release();
      };
      await each(chosen, (committer) => committer.room());
      countOddValues(tally, slice);
      await each(chosen, (committer) => {
        holders += 1;
        return committer.add(slice, { reader, bytes, onEnd });
      });
    },
    flush: (): Promise<void> => each(undefined, (committer) => committer.flush()),
    /** Runs work between two commits. Up to one batch of rows may be added meanwhile; it is committed afterwards. */
    async between(work: () => Promise<void>): Promise<void> {
      let gate = { open: (): void => {}, refuse: (_reason: unknown): void => {} };
      const opened = new Promise<void>((open, refuse) => {
        gate = { open, refuse };
      });
      opened.catch(() => {}); // Reported by the commits that wait for it.
      try {
        await each(undefined, (committer) => committer.hold(opened));
        await work();
        gate.open();
      } catch (error) {
        // Recovery: none here. Commits that wait for the gate must not run; they fail with this error.
        gate.refuse(error);
        throw error;
      }
    },
    fault: (): Fault | undefined => [...failed.values()][0],
    /** Releases the memory of slices that were never committed. */
    close(): void {
      for (const release of releases) release();
    },
  };
}

function countOddValues(tally: Tally, { rows }: Slice): void {
  for (const row of rows) {
    for (const name of row.contradictions) tally.contradictions[name] = (tally.contradictions[name] ?? 0) + 1;
    for (const name of row.typeMismatches) tally.typeMismatches[name] = (tally.typeMismatches[name] ?? 0) + 1;
  }
}

type RunBase = Pick<Advance, 'source' | 'runId' | 'epoch' | 'since' | 'filters'>;

interface SinkCommitterOptions extends Omit<CommitterOptions, 'sinks' | 'foreign' | 'failed'> {
  sink: Sink;
  foreign?: readonly ForeignRows[];
  /** Sanitized and quarantined records are the same for every sink, so only the first one counts them. */
  isFirst: boolean;
}

/** If the table changes at every attempt, the cause is not just a few processes with new fields. */
const MOST_ATTEMPTS = 5;

type SinkCommitter = ReturnType<typeof createSinkCommitter>;

/** Commits slices to one sink in batches of a few pages, each while the next one is being read. */
export function createSinkCommitter(options: SinkCommitterOptions) {
  const { sink, evolver, base, serverNow, onCommit, foreign = [], memory = processMemory, tally, isFirst } = options;
  const keptFrom = (): Instant => options.keptFrom?.(sink) ?? Number.NEGATIVE_INFINITY;
  let arrived: Arrived[] = [];
  let sends = 0;
  let shape = '';
  let lastQueued: Promise<void> = Promise.resolve();
  /** Pending until the commit of the batch that was sent last begins. */
  let waiting: Promise<void> | undefined;
  const batches = sink.isByTime ? LAKE_BATCHES : 1;
  const mostRows = sink.batchRows * batches;
  const mostBytes = Math.min(sink.batchRows * ROW_BYTES, memory.bytes / (BATCHES * (COPIES + 1))) * batches;

  /** Prepares the table before the first rows and when columns are added, not earlier: a refused key must leave no empty tables. */
  const prepare = async (stream: Stream): Promise<void> => {
    const wanted = describeColumns(stream);
    if (wanted === shape) return;
    await sink.prepare(stream);
    shape = wanted;
  };

  const commit = async (stream: Stream, pending: Pending, rows: readonly Row[]): Promise<void> => {
    const { rejected, newest: newestSeen } = pending;
    const spans = foreign.reduce<Span[]>(uncertifyForeign, pending.spans);
    const open = await fill(sink, stream, rows);
    // The epoch is read last: the lease may have been handed over and taken back since the batch began.
    const run = base();
    const since = Math.max(run.since, keptFrom());
    const advance = { ...run, since, commitId: randomUUID(), stream: stream.name, sink: sink.name, spans, newestSeen };
    const receipt = await open.commit(advance, rejected);
    const { new: added, changed, unchanged } = receipt;
    countCommit(tally, sink.name, { new: added, changed, unchanged });
    if (isFirst) {
      tally.sanitized += receipt.sanitized;
      tally.quarantined += rejected.length;
    }
    onCommit(sink.name, spans);
  };

  const write = async (pending: Pending): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      try {
        const { stream, rows } = await evolver.evolve(pending.rows);
        await prepare(stream);
        const attributes = { sink: sink.name, stream: stream.name, rows: rows.length };
        return await observed('commit', attributes, () => commit(stream, pending, rows));
      } catch (error) {
        // Recovery: another process changed the table meanwhile: adopt its columns and write the batch with them.
        if (!(error instanceof ShapeChanged) || attempt === MOST_ATTEMPTS) throw error;
        shape = '';
        await evolver.widenColumns(error.wider);
      }
    }
  };

  /** Runs work items sequentially, in the order of the calls. Returns the promise that the new one waits for. */
  const queue = (work: () => Promise<void>): Promise<void> => {
    const before = lastQueued;
    lastQueued = before.then(work);
    // A failure is thrown where it is awaited: at the next commit, or at the flush.
    lastQueued.catch(() => {});
    return before;
  };

  const send = (slices: readonly Arrived[]): Promise<void> => {
    const sent = new Set(slices);
    arrived = arrived.filter((one) => !sent.has(one));
    const batch = batchOf(slices, serverNow());
    // Each sink encodes its own copies of the rows, so `memory` runs large batches one at a time, across all streams and sinks.
    const before = queue(() => memory.hold(sumOf(slices, bytesIn) * COPIES, () => write(batch), { isWayOut: true }));
    const onEnd = (): void => {
      for (const slice of slices) slice.onEnd();
    };
    lastQueued.then(onEnd, onEnd);
    waiting = before;
    const onBegin = (): void => {
      if (waiting === before) waiting = undefined;
    };
    before.then(onBegin, onBegin);
    return before;
  };

  return {
    /** Waits while one batch is being committed and a second one is full: otherwise each of the parallel chains would fill another. */
    async room() {
      while (waiting) await waiting;
    },
    async add(slice: Slice, { reader, bytes = bytesOf(slice.rows), onEnd = () => {} }: Partial<Arrived> = {}) {
      arrived.push({ slice: startingAt(slice, keptFrom()), reader, bytes, onEnd });
      // If readers are waiting for memory, the rows are written at once instead of filling the batch.
      if (memory.isShort()) await send(arrived);
      else if (sumOf(arrived, rowsIn) >= mostRows || sumOf(arrived, bytesIn) >= mostBytes)
        await send(sink.isByTime && ++sends % FULL_SEND_EVERY > 0 ? busiestReader(arrived) : arrived);
    },
    /** Commits the remaining rows and waits for all commits. */
    async flush() {
      if (arrived.length > 0) await send(arrived);
      await lastQueued;
    },
    /** Commits the remaining rows, and nothing more until `gate` opens. Resolves when the last commit before it has ended. */
    async hold(gate: Promise<void>) {
      if (arrived.length > 0) send(arrived).catch(() => {}); // It fails again below, where it is awaited.
      await queue(() => gate);
    },
  };
}

const bytesIn = ({ bytes }: Arrived): number => bytes;

/**
 * For sinks ordered by time (lakes), batches in memory. Of the windows that are read in parallel, the one with most rows is written and the
 * rest waits: writing small parts of all of them would merge the same files again and again.
 */
const LAKE_BATCHES = 2;
/** After this many batches, all rows are written, so that those of a chain with few rows do not wait until the end. */
const FULL_SEND_EVERY = 16;

/** How often a sink roughly holds a batch in memory while it commits: as text, encoded columns and network buffers. */
const COPIES = 4;

/** The number of batches that the memory limit must have room for. */
const BATCHES = 6;

/** More than the usual size of a row. Batches hold fewer rows if they are larger, so that two batches still fit in memory. */
const ROW_BYTES = 4096;

async function fill(sink: Sink, stream: Stream, rows: readonly Row[]): Promise<Batch> {
  const batch = await sink.open(stream);
  try {
    await batch.write(rows);
    return batch;
  } catch (error) {
    await batch.abort();
    throw error;
  }
}
