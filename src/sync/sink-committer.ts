import { randomUUID } from 'node:crypto';
import type { Advance, Span } from '../cursor/ledger.ts';
import type { Tally } from '../cursor/runs.ts';
import { Certified } from '../extract/proof/certified.ts';
import type { Rejection, Slice } from '../extract/reader.ts';
import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import { observed } from '../model/observed.ts';
import type { Stream } from '../model/streams.ts';
import { type Batch, type Receipt, ShapeChanged, type Sink } from '../sinks/sink.ts';
import type { Evolver } from './evolver.ts';

/** Carries slices into one sink: batches of a few pages, each committed while the next is being read. */
export interface SinkCommitter {
  add(slice: Slice): Promise<void>;
  /** Commits what is left and waits for it. */
  flush(): Promise<void>;
  /** Commits what is left, and nothing more until `gate` opens. Resolves when the last commit before it is through. */
  hold(gate: Promise<void>): Promise<void>;
}

export type RunBase = Pick<Advance, 'source' | 'runId' | 'epoch' | 'since'>;

export interface SinkCommitterOptions {
  sink: Sink;
  evolver: Evolver;
  base: () => RunBase;
  serverNow: () => Instant;
  onCommit: (through: Instant | undefined) => void;
  /** Where what the commits did is counted, if it is. */
  tally?: Tally;
}

/** A table that changes under every one of them is being changed by more than a few processes that meet the same fields. */
const MOST_ATTEMPTS = 5;

export function createSinkCommitter(options: SinkCommitterOptions): SinkCommitter {
  const { sink, evolver, base, serverNow, onCommit, tally } = options;
  let batch = newBatch();
  let shape = '';
  let underWay: Promise<void> = Promise.resolve();

  /** Tables are made when there is something to put in, and again when it has grown: a key that is refused leaves nothing. */
  const prepare = async (stream: Stream): Promise<void> => {
    const wanted = stream.columns.map(({ name, kind }) => `${name} ${kind}`).join();
    if (wanted === shape) return;
    await sink.prepare(stream);
    shape = wanted;
  };

  const commit = async (stream: Stream, pending: Pending, rows: readonly Row[]): Promise<void> => {
    const { spans, rejected, newest: newestSeen } = pending;
    const open = await fill(sink, stream, rows);
    // The epoch is read last: the lease may have been given away and taken again since the batch was begun.
    const advance = { ...base(), commitId: randomUUID(), stream: stream.name, sink: sink.name, spans, newestSeen };
    const receipt = await open.commit(advance, rejected);
    if (tally) count(tally, receipt, rejected.length);
    onCommit(spans.findLast((span) => span.certified)?.end);
  };

  const carry = async (pending: Pending): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      try {
        const { stream, rows } = await evolver.evolve(pending.rows);
        await prepare(stream);
        const attributes = { sink: sink.name, stream: stream.name, rows: rows.length };
        return await observed('commit', attributes, () => commit(stream, pending, rows));
      } catch (error) {
        // Recovery: another process taught the table something meanwhile; learn it too and write the batch in the new shape.
        if (!(error instanceof ShapeChanged) || attempt === MOST_ATTEMPTS) throw error;
        shape = '';
        await evolver.adopt(error.wider);
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

  /** Whoever brings the next batch waits for the last one. */
  const send = (): Promise<void> => {
    const ready = batch;
    batch = newBatch();
    return queue(() => carry(ready));
  };

  return {
    async add(slice) {
      collect(batch, slice, serverNow());
      if (batch.rows.length >= sink.batchRows) await send();
    },
    async flush() {
      if (!batch.isEmpty) await send();
      await underWay;
    },
    async hold(gate) {
      if (!batch.isEmpty) send().catch(() => {}); // It fails again below, where it is awaited.
      await queue(() => gate);
    },
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

function collect(batch: Pending, { window, certified, whole, note, rows, rejected }: Slice, now: Instant): void {
  batch.isEmpty = false;
  batch.rejected.push(...rejected);
  for (const row of rows) {
    batch.rows.push(row);
    if (row.at <= now) batch.newest = Math.max(batch.newest ?? row.at, row.at);
  }
  if (window) addSpan(batch.spans, { ...window, certified, rows: rows.length, note, whole });
}

/** Slices of one kind that follow each other are one window in the ledger. */
function addSpan(spans: Span[], span: Span): void {
  const last = spans.at(-1);
  if (
    last &&
    last.end === span.start &&
    (last.certified === undefined) === (span.certified === undefined) &&
    last.note === span.note &&
    last.whole === span.whole
  ) {
    const certified = last.certified && span.certified && Certified.join(last.certified, span.certified);
    spans[spans.length - 1] = { ...last, end: span.end, certified, rows: last.rows + span.rows };
  } else if (span.end > span.start) {
    spans.push(span);
  }
}

function count(tally: Tally, receipt: Receipt, rejected: number): void {
  // Pages overlap: what counts is what the sink met.
  tally.read += receipt.new + receipt.changed + receipt.unchanged;
  tally.new += receipt.new;
  tally.changed += receipt.changed;
  tally.unchanged += receipt.unchanged;
  tally.mended += receipt.sanitized;
  tally.quarantined += rejected;
}

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
