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
import { withheld } from './holdings/attest.ts';
import { type Arrived, batchOf, bytesOf, longestStretch, type Pending, rowsIn, startingAt, sumOf } from './pending.ts';
import type { SchemaEvolution } from './schema-evolution.ts';

export type Committer = ReturnType<typeof createCommitter>;

interface CommitterOptions {
  sinks: readonly Sink[];
  evolver: SchemaEvolution;
  /** The part of every advance that stays the same during a run. A function, because the epoch changes when the lease is given away and taken back. */
  base: () => RunBase;
  tally: Tally;
  serverNow: () => Instant;
  failed?: ReadonlyMap<string, Fault>;
  /** Before this the sink keeps nothing. By the database's clock, which every run goes by: it never falls back. */
  keptFrom?: (sink: Sink) => Instant;
  /** By sink: windows that hold rows of another writer, which no reading makes complete. */
  foreign?: ReadonlyMap<string, readonly ForeignRows[]>;
  onCommit: (sink: string, spans: readonly Span[]) => void;
  memory?: Memory;
}

/** Each sink has its own batches and cursor. One that fails is reported at the end; the others still get every row, as the requests are spent. */
export function createCommitter(options: CommitterOptions) {
  const { sinks, tally, memory = processMemory } = options;
  const committers = new Map<string, SinkCommitter>(
    sinks.map((sink, i) => {
      const foreign = options.foreign?.get(sink.name) ?? [];
      return [sink.name, createSinkCommitter({ ...options, sink, foreign, isFirst: i === 0 })];
    }),
  );
  const failed = new Map<string, Fault>(options.failed);
  /** Slices that some sink has not committed yet. */
  const kept = new Set<() => void>();

  const keep = (bytes: number): (() => void) => {
    const release = memory.keep(bytes);
    const letGo = (): void => {
      if (kept.delete(letGo)) release();
    };
    kept.add(letGo);
    return letGo;
  };

  const each = async (
    chosen: ReadonlySet<string> | undefined,
    work: (committer: SinkCommitter) => Promise<void>,
  ): Promise<void> => {
    const all = [...committers].filter(([name]) => !failed.has(name) && (!chosen || chosen.has(name)));
    // All sinks at the same time: a concurrent flush must find a slice in the batch of every sink or of none.
    const outcomes = await Promise.allSettled(all.map(([, committer]) => work(committer)));
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') continue;
      const [name, error] = [all[i]?.[0] ?? '', outcome.reason];
      // Recovery: the cursor of this sink stays where it is. If it was the last sink, reading on makes no sense.
      if (!(error instanceof Fault)) throw error;
      failed.set(name, sinks.length > 1 ? error.at({ sink: name }) : error);
      if (failed.size === committers.size) throw error;
    }
  };

  return {
    /** To the sinks named, or to all. Slices of one reader are committed in the order they came. */
    async add(slice: Slice, chosen?: ReadonlySet<string>, reader?: unknown): Promise<void> {
      const bytes = bytesOf(slice.rows);
      const letGo = keep(bytes);
      let holders = 0;
      const onEnd = (): void => {
        if (--holders === 0) letGo();
      };
      await each(chosen, (committer) => committer.room());
      countOddValues(tally, slice);
      await each(chosen, (committer) => {
        holders += 1;
        return committer.add(slice, { reader, bytes, onEnd });
      });
    },
    flush: (): Promise<void> => each(undefined, (committer) => committer.flush()),
    /** Runs work between two commits. Up to a batch of rows may be added meanwhile; it is committed afterwards. */
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
        // Recovery: none here. Commits that wait at the gate must not go through; they fail with this error.
        gate.refuse(error);
        throw error;
      }
    },
    fault: (): Fault | undefined => [...failed.values()][0],
    /** Lets go of what was never committed. */
    close(): void {
      for (const letGo of kept) letGo();
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
  /** Every sink meets the same odd records; they are counted once. */
  isFirst: boolean;
}

/** If the table changes at every attempt, something other than a few processes with new fields is changing it. */
const MOST_ATTEMPTS = 5;

type SinkCommitter = ReturnType<typeof createSinkCommitter>;

/** Carries slices into one sink: batches of a few pages, each committed while the next is being read. */
export function createSinkCommitter(options: SinkCommitterOptions) {
  const { sink, evolver, base, serverNow, onCommit, foreign = [], memory = processMemory, tally, isFirst } = options;
  const keptFrom = (): Instant => options.keptFrom?.(sink) ?? Number.NEGATIVE_INFINITY;
  let arrived: Arrived[] = [];
  let stretches = 0;
  let shape = '';
  let underWay: Promise<void> = Promise.resolve();
  /** Until the batch that was sent last begins to be committed. */
  let waiting: Promise<void> | undefined;
  const batches = sink.isByTime ? STRETCHES : 1;
  const mostRows = sink.batchRows * batches;
  const mostBytes = Math.min(sink.batchRows * ROW_BYTES, memory.bytes / (BATCHES * (COPIES + 1))) * batches;

  /** Creates the table at the first row, and again when columns are added: a refused key must leave no empty tables. */
  const prepare = async (stream: Stream): Promise<void> => {
    const wanted = describeColumns(stream);
    if (wanted === shape) return;
    await sink.prepare(stream);
    shape = wanted;
  };

  const commit = async (stream: Stream, pending: Pending, rows: readonly Row[]): Promise<void> => {
    const { rejected, newest: newestSeen } = pending;
    const spans = foreign.reduce<Span[]>(withheld, pending.spans);
    const open = await fill(sink, stream, rows);
    // The epoch is read last: the lease may have been given away and taken again since the batch was begun.
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

  const carry = async (pending: Pending): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      try {
        const { stream, rows } = await evolver.evolve(pending.rows);
        await prepare(stream);
        const attributes = { sink: sink.name, stream: stream.name, rows: rows.length };
        return await observed('commit', attributes, () => commit(stream, pending, rows));
      } catch (error) {
        // Recovery: another process changed the table meanwhile: take over its columns and write the batch in the new shape.
        if (!(error instanceof ShapeChanged) || attempt === MOST_ATTEMPTS) throw error;
        shape = '';
        await evolver.widenColumns(error.wider);
      }
    }
  };

  /** One after the other, in the order in which they were asked for. Returns what the new one waits for. */
  const queue = (work: () => Promise<void>): Promise<void> => {
    const before = underWay;
    underWay = before.then(work);
    // The failure is thrown where it is awaited: at the next commit, or at the flush.
    underWay.catch(() => {});
    return before;
  };

  const send = (slices: readonly Arrived[]): Promise<void> => {
    const sent = new Set(slices);
    arrived = arrived.filter((one) => !sent.has(one));
    const ready = batchOf(slices, serverNow());
    // Each sink makes its own forms of the rows: large batches go one after the other, over all streams and sinks.
    const before = queue(() => memory.hold(sumOf(slices, bytesIn) * COPIES, () => carry(ready), { isWayOut: true }));
    const ends = (): void => {
      for (const { onEnd } of slices) onEnd();
    };
    underWay.then(ends, ends);
    waiting = before;
    const begins = (): void => {
      if (waiting === before) waiting = undefined;
    };
    before.then(begins, begins);
    return before;
  };

  return {
    /** Waits while one batch is being committed and a second one is full: many chains read at a time, and each would fill another. */
    async room() {
      while (waiting) await waiting;
    },
    async add(slice: Slice, { reader, bytes = bytesOf(slice.rows), onEnd = () => {} }: Partial<Arrived> = {}) {
      arrived.push({ slice: startingAt(slice, keptFrom()), reader, bytes, onEnd });
      // Where readers wait for memory, rows wait for no others to be written with.
      if (memory.isShort()) await send(arrived);
      else if (sumOf(arrived, rowsIn) >= mostRows || sumOf(arrived, bytesIn) >= mostBytes)
        await send(sink.isByTime && ++stretches % MOST_STRETCHES > 0 ? longestStretch(arrived) : arrived);
    },
    /** Commits what is left and waits for it. */
    async flush() {
      if (arrived.length > 0) await send(arrived);
      await underWay;
    },
    /** Commits what is left, and nothing more until `gate` opens. Resolves when the last commit before it is through. */
    async hold(gate: Promise<void>) {
      if (arrived.length > 0) send(arrived).catch(() => {}); // It fails again below, where it is awaited.
      await queue(() => gate);
    },
  };
}

const bytesIn = ({ bytes }: Arrived): number => bytes;

/**
 * A lake keeps its rows in order of time. Of the windows that are read side by side, it gets the one with most rows, and the rest waits:
 * pieces of all of them would be joined with the same files over and over.
 */
const STRETCHES = 2;
/** Then all that has come is written: what a reader found who sees few rows does not wait for the end. */
const MOST_STRETCHES = 16;

/** About what a sink makes of a batch while it commits: text, encoded columns, bytes on their way. */
const COPIES = 4;

/** So many batches could be written at a time, as far as memory goes. */
const BATCHES = 6;

/** More than a row has as a rule. Of larger ones a batch holds fewer, so that their size does not multiply what two batches take. */
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
