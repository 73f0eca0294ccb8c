import type { Span } from '../cursor/ledger.ts';
import { Certified } from '../extract/proof/certified.ts';
import type { Rejection, Slice } from '../extract/reader.ts';
import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';

export type Pending = ReturnType<typeof newBatch>;

/** What is to be committed into a sink together: rows, the windows that they prove, and records that were set aside. */
export const newBatch = () => ({
  isEmpty: true,
  rows: [] as Row[],
  bytes: 0,
  spans: [] as Span[],
  rejected: [] as Rejection[],
  newest: undefined as Instant | undefined,
  /** Called when it is committed, or has failed. */
  onEnd: [] as Array<() => void>,
});

export function collect(batch: Pending, { window, certified, whole, note, rows, rejected }: Slice, now: Instant): void {
  batch.isEmpty = false;
  batch.rejected.push(...rejected);
  for (const row of rows) {
    batch.rows.push(row);
    if (row.at <= now) batch.newest = Math.max(batch.newest ?? row.at, row.at);
  }
  if (window) addSpan(batch.spans, { ...window, certified, rows: rows.length, note, whole });
}

/** Without what lies before a moment. */
export function startingAt(slice: Slice, from: Instant): Slice {
  const { window, rows } = slice;
  const isKept = rows.every(({ at }) => at >= from) && (!window || window.start >= from);
  if (isKept) return slice;
  const start = Math.max(window?.start ?? from, from);
  return {
    ...slice,
    rows: rows.filter(({ at }) => at >= from),
    window: window && { start, end: Math.max(window.end, start) },
  };
}

/** Every value of every row comes through here: a call for each takes half as long again. */
export function bytesOf(rows: readonly Row[]): number {
  let bytes = 0;
  for (const { values, extra } of rows) {
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      bytes += typeof value === 'string' ? value.length : sizeOf(value);
    }
    bytes += sizeOf(extra);
  }
  return bytes;
}

/** About what a value takes; only long texts matter. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let bytes = 0;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) bytes += sizeOf(inner);
  return bytes;
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
