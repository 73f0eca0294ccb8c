import type { Span } from '../cursor/ledger.ts';
import { Certified } from '../extract/proof/certified.ts';
import type { Slice } from '../extract/reader.ts';
import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import { merged, type Window } from '../model/window.ts';
import { groupBy } from '../sinks/files/group-by.ts';

export interface Arrived {
  slice: Slice;
  /** Identifies the chain that read it: slices of one reader are committed in order. */
  reader: unknown;
  bytes: number;
  onEnd: () => void;
}

export type Pending = ReturnType<typeof batchOf>;

export function batchOf(slices: readonly Arrived[], now: Instant) {
  const rows: Row[] = [];
  const spans: Span[] = [];
  let newest: Instant | undefined;
  for (const { slice } of slices) {
    const { window, certified, whole, note } = slice;
    for (const row of slice.rows) {
      rows.push(row);
      if (row.at <= now) newest = Math.max(newest ?? row.at, row.at);
    }
    if (window) spans.push({ ...window, certified, rows: slice.rows.length, note, whole });
  }
  const joined = merged(spans, joinSpans).filter(({ start, end }) => start < end);
  return { rows, spans: joined, newest, rejected: slices.flatMap(({ slice }) => slice.rejected) };
}

export const rowsIn = ({ slice }: Arrived): number => slice.rows.length;

export const sumOf = (slices: readonly Arrived[], size: (one: Arrived) => number): number =>
  slices.reduce((sum, one) => sum + size(one), 0);

/** The slices of the reader with most rows; all slices if the ranges of readers overlap, because then the later read must win. */
export function busiestReader(slices: readonly Arrived[]): readonly Arrived[] {
  const byReader = [...groupBy(slices, ({ reader }) => reader).values()];
  const busiest = byReader.reduce((a, b) => (sumOf(b, rowsIn) > sumOf(a, rowsIn) ? b : a));
  const { start, end } = extentOf(busiest);
  const isApart = (other: Window): boolean => other.end < start || other.start > end;
  return byReader.every((one) => one === busiest || isApart(extentOf(one))) ? busiest : slices;
}

function extentOf(slices: readonly Arrived[]): Window {
  const extent = { start: Number.POSITIVE_INFINITY, end: Number.NEGATIVE_INFINITY };
  const cover = (from: Instant, to: Instant): void => {
    extent.start = Math.min(extent.start, from);
    extent.end = Math.max(extent.end, to);
  };
  for (const { window, rows } of slices.map(({ slice }) => slice)) {
    if (window) cover(window.start, window.end - 1);
    for (const { at } of rows) cover(at, at);
  }
  return extent;
}

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

/** A hot loop over every value of every row: calling sizeOf for each would take half as long again. */
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

/** The approximate size of a value; only long texts matter. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let bytes = 0;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) bytes += sizeOf(inner);
  return bytes;
}

/** Joins adjacent slices with the same state and note into one window of the ledger. */
function joinSpans(last: Span, span: Span): Span | undefined {
  const isSameState =
    last.start < last.end &&
    last.end === span.start &&
    (last.certified === undefined) === (span.certified === undefined) &&
    last.note === span.note &&
    last.whole === span.whole;
  if (!isSameState) return undefined;
  const certified = last.certified && span.certified && Certified.join(last.certified, span.certified);
  return { ...last, end: span.end, certified, rows: last.rows + span.rows };
}
