import { randomUUID } from 'node:crypto';
import type { Advance, Span } from '../cursor/ledger.ts';
import type { Tally } from '../cursor/runs.ts';
import type { Rejection, Slice } from '../extract/reader.ts';
import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import type { Stream } from '../model/streams.ts';
import { type Batch, ShapeChanged, type Sink } from '../sinks/sink.ts';
import type { Evolver } from './evolver.ts';

/** Carries slices into the sinks: batches of a few pages, each committed while the next is being read. */
export interface Committer {
  add(slice: Slice): Promise<void>;
  /** Commits what is left and waits for it. */
  flush(): Promise<void>;
  /** Whether some window had to be left uncertified. */
  hasDoubts(): boolean;
}

export interface CommitterOptions {
  sinks: readonly Sink[];
  evolver: Evolver;
  /** The part of every advance that does not change during a run. */
  base: Pick<Advance, 'source' | 'runId' | 'epoch' | 'since'>;
  tally: Tally;
  serverNow: () => Instant;
  onCommit: (through: Instant | undefined) => void;
}

/** Large enough that a batch loads at full speed, small enough that two of them bound the memory. */
export const BATCH_ROWS = 5000;

/** A table that changes under every one of them is being changed by more than a few processes that meet the same fields. */
const MOST_ATTEMPTS = 5;

export function createCommitter(options: CommitterOptions): Committer {
  let batch = newBatch();
  let shape = '';
  let underWay: Promise<void> = Promise.resolve();
  let doubts = false;

  /** Tables are made when there is something to put in, and again when it has grown: a key that is refused leaves nothing. */
  const prepare = async (stream: Stream): Promise<void> => {
    const wanted = stream.columns.map(({ name, kind }) => `${name} ${kind}`).join();
    if (wanted === shape) return;
    for (const sink of options.sinks) await sink.prepare(stream);
    shape = wanted;
  };

  const carry = async (pending: Pending): Promise<void> => {
    const done = new Set<Sink>();
    for (let attempt = 1; ; attempt++) {
      try {
        const { stream, rows } = await options.evolver.evolve(pending.rows);
        await prepare(stream);
        return await commit(options, stream, { ...pending, rows }, done);
      } catch (error) {
        // Recovery: another process taught the table something meanwhile; learn it too and write the batch in the new shape.
        if (!(error instanceof ShapeChanged) || attempt === MOST_ATTEMPTS) throw error;
        shape = '';
        await options.evolver.adopt(error.wider);
      }
    }
  };

  const send = async (): Promise<void> => {
    const ready = batch;
    batch = newBatch();
    await underWay;
    underWay = carry(ready);
    // The failure is thrown where it is awaited: at the next commit, or at the flush.
    underWay.catch(() => {});
  };

  return {
    async add(slice) {
      collect(batch, slice, options);
      doubts ||= slice.window !== undefined && !slice.certified;
      if (batch.rows.length >= BATCH_ROWS) await send();
    },
    async flush() {
      if (!batch.isEmpty) await send();
      await underWay;
    },
    hasDoubts: () => doubts,
  };
}

interface Pending {
  isEmpty: boolean;
  rows: Row[];
  spans: Span[];
  rejected: Rejection[];
  newest: Instant | undefined;
}

const newBatch = (): Pending => ({
  isEmpty: true,
  rows: [],
  spans: [],
  rejected: [],
  newest: undefined,
});

function collect(batch: Pending, slice: Slice, { tally, serverNow }: CommitterOptions): void {
  const { window, certified, note, rows, rejected } = slice;
  batch.isEmpty = false;
  batch.rows.push(...rows);
  batch.rejected.push(...rejected);
  if (window) addSpan(batch.spans, { ...window, certified, rows: rows.length, note, whole: slice.whole });
  for (const row of rows) {
    if (row.at <= serverNow()) batch.newest = Math.max(batch.newest ?? row.at, row.at);
    for (const name of row.contradictions) tally.contradictions[name] = (tally.contradictions[name] ?? 0) + 1;
    for (const name of row.misfits) tally.misfits[name] = (tally.misfits[name] ?? 0) + 1;
  }
  tally.read += rows.length;
}

/** Slices of one kind that follow each other are one window in the ledger. */
function addSpan(spans: Span[], span: Span): void {
  const last = spans.at(-1);
  if (
    last &&
    last.end === span.start &&
    last.certified === span.certified &&
    last.note === span.note &&
    last.whole === span.whole
  ) {
    spans[spans.length - 1] = { ...last, end: span.end, rows: last.rows + span.rows };
  } else if (span.end > span.start) {
    spans.push(span);
  }
}

async function commit(options: CommitterOptions, stream: Stream, pending: Pending, done: Set<Sink>): Promise<void> {
  const { sinks, base, tally, onCommit } = options;
  const { rows, spans, rejected, newest: newestSeen } = pending;
  for (const [i, sink] of sinks.entries()) {
    if (done.has(sink)) continue;
    const batch = await open(sink, stream, rows);
    const advance = {
      ...base,
      commitId: randomUUID(),
      stream: stream.name,
      sink: sink.name,
      spans,
      newestSeen,
    };
    const receipt = await batch.commit(advance, rejected);
    done.add(sink);
    // Every sink gets the same rows; the summary counts them once, as the first sink met them.
    if (i > 0) continue;
    tally.new += receipt.new;
    tally.changed += receipt.changed;
    tally.unchanged += receipt.unchanged;
    tally.mended += receipt.mended;
    tally.quarantined += rejected.length;
  }
  onCommit(spans.findLast((span) => span.certified)?.end);
}

async function open(sink: Sink, stream: Stream, rows: readonly Row[]): Promise<Batch> {
  const batch = await sink.open(stream);
  try {
    await batch.write(rows);
    return batch;
  } catch (error) {
    await batch.abort();
    throw error;
  }
}
