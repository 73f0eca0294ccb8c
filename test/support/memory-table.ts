import type { Advance } from '../../src/cursor/ledger.ts';
import type { Row } from '../../src/model/flatten.ts';
import type { Instant } from '../../src/model/instant.ts';
import type { Stream } from '../../src/model/streams.ts';
import { holds, type Window } from '../../src/model/window.ts';
import { bookkeeping, createMergeRule } from '../../src/sinks/files/merge-row.ts';
import { columnsOf, createReshape, type LakeRow } from '../../src/sinks/files/partition-file.ts';
import { createSanitizer, newestById, UTF8_TEXT } from '../../src/sinks/merge-rule.ts';
import type { Receipt } from '../../src/sinks/sink.ts';

/** Rows of events in memory, merged by the same rule as a lake's files. */
export interface MemoryTable {
  merge(stream: Stream, rows: readonly Row[], advance: Advance, now: Instant): Receipt;
  /** Rows of every source, with the columns of `columnsOf(stream)`. */
  read(stream: Stream): LakeRow[];
  /** The number of a source's rows in each window. */
  count(stream: Stream, source: string, windows: readonly Window[]): number[];
  has(id: string): boolean;
  /** The ids of all events. */
  keys(): Iterable<string>;
  readonly size: number;
}

interface Held {
  /** The stream whose columns the row has. */
  stream: Stream;
  row: LakeRow;
}

export function createMemoryTable(): MemoryTable {
  const feeds = new Map<string, Map<string, Held>>();
  const feedOf = ({ source, stream }: Advance): Map<string, Held> => {
    const key = JSON.stringify([stream, source]);
    const held = feeds.get(key) ?? new Map<string, Held>();
    feeds.set(key, held);
    return held;
  };
  return {
    merge: (stream, rows, advance, now) => mergeInto(feedOf(advance), stream, rows, advance, now),
    read: (stream) =>
      [...feeds].flatMap(([key, held]) =>
        (JSON.parse(key) as string[])[0] === stream.name ? [...held.values()].map((one) => inColumns(one, stream)) : [],
      ),
    count: ({ name }, source, windows) => {
      const held = [...(feeds.get(JSON.stringify([name, source]))?.values() ?? [])];
      const times = held.map(({ stream, row }) => Number(row[planOf(stream).timeAt]));
      return windows.map((window) => times.filter((at) => holds(window, at)).length);
    },
    has: (id) => [...feeds.values()].some((held) => held.has(id)),
    keys: () => [...feeds.values()].flatMap((held) => [...held.keys()]),
    get size() {
      return [...feeds.values()].reduce((sum, held) => sum + held.size, 0);
    },
  };
}

function mergeInto(
  held: Map<string, Held>,
  stream: Stream,
  rows: readonly Row[],
  { source, runId, spans }: Advance,
  now: Instant,
): Receipt {
  const { rule, deciding, timeAt, missingAt } = planOf(stream);
  const sanitizer = createSanitizer(stream, UTF8_TEXT);
  const shown = newestById(rows);
  const ids = shown.keys();
  const receipt = { new: 0, changed: 0, unchanged: 0 };
  for (const values of sanitizer.all([...shown.values()], [source])) {
    const id = ids.next().value as string;
    const read = [...values, ...bookkeeping(now, runId)];
    const known = held.get(id);
    const stored = known && inColumns(known, stream);
    const isChanged =
      stored &&
      rule.differing(
        deciding.map((at) => stored[at] ?? null),
        read,
      ).length > 0;
    if (!stored || isChanged) held.set(id, { stream, row: stored ? rule.merge(stored, read) : read });
    receipt[stored ? (isChanged ? 'changed' : 'unchanged') : 'new'] += 1;
  }
  const fullWindows = spans.filter(({ whole }) => whole);
  const isGone = (id: string, at: Instant): boolean =>
    !shown.has(id) && fullWindows.some(({ start, end }) => at >= start && at < end);
  for (const [id, one] of fullWindows.length > 0 ? held : []) {
    const row = inColumns(one, stream);
    if (row[missingAt] === null && isGone(id, row[timeAt] as Instant)) {
      held.set(id, { stream, row: row.with(missingAt, now) });
    }
  }
  return { ...receipt, sanitized: sanitizer.sanitized() };
}

function inColumns({ stream: from, row }: Held, to: Stream): LakeRow {
  return from === to ? row : createReshape(columnsOf(from), columnsOf(to))(row);
}

interface Plan {
  rule: ReturnType<typeof createMergeRule>;
  deciding: number[];
  timeAt: number;
  missingAt: number;
}

const plans = new WeakMap<Stream, Plan>();

function planOf(stream: Stream): Plan {
  const made = plans.get(stream);
  if (made) return made;
  const columns = columnsOf(stream);
  const place = (name: string): number => columns.findIndex((column) => column.name === name);
  const rule = createMergeRule(stream, columns);
  const plan = {
    rule,
    deciding: rule.deciding.map(place),
    timeAt: place('timestamp'),
    missingAt: place('_missing_since'),
  };
  plans.set(stream, plan);
  return plan;
}
