import type { Cursor } from '../../src/cursor/cursors.ts';
import type { Advance } from '../../src/cursor/ledger.ts';
import type { Rejection } from '../../src/extract/reader.ts';
import { completeThrough, type Entry, overlay } from '../../src/model/coverage.ts';
import type { Row } from '../../src/model/flatten.ts';
import type { Instant } from '../../src/model/instant.ts';
import type { Sink } from '../../src/sinks/sink.ts';

/** Sink and state in memory, with the arithmetic of the real ledger: what `applyAdvance` of src/cursor does in SQL. */
export interface MemorySink extends Sink {
  readonly rows: ReadonlyMap<string, Row>;
  readonly rejected: readonly Rejection[];
  readonly commits: number;
  ledger(): readonly Entry[];
  cursor(): Cursor | undefined;
  /** Called before and after every commit; what it throws is a crash at that very moment. */
  onCommit: (moment: 'before' | 'after', advance: Advance) => void;
}

export function createMemorySink(now: () => Instant): MemorySink {
  const rows = new Map<string, Row>();
  const rejected: Rejection[] = [];
  let ledger: Entry[] = [];
  let cursor: Cursor | undefined;
  let commits = 0;

  function apply({ spans, since, newestSeen, runId }: Advance): void {
    const at = now();
    for (const { note, whole: _, ...span } of spans) {
      const provenAt = span.certified ? at : undefined;
      ledger = overlay(ledger, { ...span, readAt: at, provenAt, runId, note });
    }
    const before = cursor && since >= cursor.since ? cursor.completeThrough : undefined;
    const start = Math.min(since, cursor?.since ?? since);
    const certified = ledger.filter((entry) => entry.certified);
    cursor = {
      since: start,
      completeThrough: completeThrough(certified, before ?? start) ?? before,
      newestSeen: greatest(cursor?.newestSeen, newestSeen),
    };
  }

  const sink: MemorySink = {
    name: 'memory',
    place: 'memory',
    batchRows: 5000,
    rows,
    rejected,
    get commits() {
      return commits;
    },
    ledger: () => ledger,
    cursor: () => cursor,
    onCommit: () => {},
    prepare: async () => {},
    close: async () => {},
    async open() {
      const written: Row[] = [];
      return {
        async write(more) {
          written.push(...more);
        },
        async commit(advance, set = []) {
          sink.onCommit('before', advance);
          const known = rows.size;
          for (const row of written) rows.set(row.id, row);
          rejected.push(...set);
          apply(advance);
          commits += 1;
          sink.onCommit('after', advance);
          return { new: rows.size - known, changed: 0, unchanged: written.length - (rows.size - known), sanitized: 0 };
        },
        async abort() {},
      };
    },
  };
  return sink;
}

const greatest = (a: Instant | undefined, b: Instant | undefined): Instant | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
