import type { Cursor } from '../../src/cursor/cursors.ts';
import type { Advance } from '../../src/cursor/ledger.ts';

import type { Rejected } from '../../src/cursor/quarantine.ts';
import { Certified } from '../../src/extract/proof/certified.ts';
import type { Row } from '../../src/model/flatten.ts';
import type { Instant } from '../../src/model/instant.ts';
import type { Stream } from '../../src/model/streams.ts';
import { completeThrough, type Entry, overlay } from '../../src/model/window.ts';
import type { Receipt, Sink } from '../../src/sinks/sink.ts';
import { createMemoryTable, type MemoryTable } from './memory-table.ts';

/** The state's part of a commit: gives the time, lets the sink write, and moves the cursor, or refuses. */
export type Books = (change: Change) => Promise<Receipt>;

export interface Change {
  advance: Advance;
  rejected: readonly Rejected[];
  stream: Stream;
  rows: readonly Row[];
  write(rows: readonly Row[], now: Instant): Receipt;
}

/** A sink in memory. With books in a real state it passes `sinkSuite`. */
export const createSinkOn = (table: MemoryTable, commit: Books): Sink => ({
  name: 'memory',
  place: 'memory',
  batchRows: 5000,
  identify: async () => 'memory',
  attest: async (stream, source, windows) => table.count(stream, source, windows).map((rows) => ({ rows })),
  prepare: async () => {},
  close: async () => {},
  async open(stream) {
    const rows: Row[] = [];
    return {
      async write(more) {
        rows.push(...more);
      },
      commit: (advance, rejected = []) =>
        commit({ advance, rejected, stream, rows, write: (kept, now) => table.merge(stream, kept, advance, now) }),
      async abort() {
        rows.length = 0;
      },
    };
  },
});

/** Cursor and ledger of one feed, as `applyAdvance` computes them: test/integration/ledger.test.ts compares the two. */
export function createMemoryLedger(now: () => Instant) {
  let ledger: Entry[] = [];
  let cursor: Cursor | undefined;
  return {
    apply({ spans, since, newestSeen, runId }: Pick<Advance, 'spans' | 'since' | 'newestSeen' | 'runId'>) {
      const at = now();
      for (const { note, certified: proof, rows, start, end } of spans) {
        const certified = Certified.covers(proof, { start, end });
        const provenAt = certified ? at : undefined;
        ledger = overlay(ledger, { start, end, certified, rows, readAt: at, provenAt, runId, note });
      }
      const before = cursor && since >= cursor.since ? cursor.completeThrough : undefined;
      const start = Math.min(since, cursor?.since ?? since);
      const certified = ledger.filter((entry) => entry.certified);
      cursor = {
        since: start,
        completeThrough: completeThrough(certified, before ?? start) ?? before,
        newestSeen: greatest(cursor?.newestSeen, newestSeen),
      };
    },
    entries: () => ledger,
    cursor: () => cursor,
  };
}

const greatest = (a: Instant | undefined, b: Instant | undefined): Instant | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);

/** Sink and state of one feed without a database, for simulations; the test sets the time. */
export interface MemorySink extends Sink {
  readonly rows: MemoryTable;
  readonly rejected: readonly Rejected[];
  ledger(): readonly Entry[];
  cursor(): Cursor | undefined;
  /** Called before and after every commit; an error that it throws is a crash at that moment. */
  onCommit: (moment: 'before' | 'after', advance: Advance) => void;
}

export function createMemorySink(now: () => Instant): MemorySink {
  const [rows, ledger] = [createMemoryTable(), createMemoryLedger(now)];
  const rejected: Rejected[] = [];
  const sink: MemorySink = {
    ...createSinkOn(rows, async ({ advance, rejected: more, rows: written, write }) => {
      sink.onCommit('before', advance);
      const receipt = write(written, now());
      rejected.push(...more);
      ledger.apply(advance);
      sink.onCommit('after', advance);
      return receipt;
    }),
    rows,
    rejected,
    ledger: ledger.entries,
    cursor: ledger.cursor,
    onCommit: () => {},
  };
  return sink;
}
