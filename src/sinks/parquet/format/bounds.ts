import { PUT, plainBytes } from './encodings.ts';
import type { LeafType, Stored } from './leaves.ts';
import type { Bound } from './types.ts';

/** Longer bounds make the footer large and help no reader. */
const LONGEST = 64;
const LAST_CODE_POINT = 0x10ffff;

export type Bounds = { min: Bound; max: Bound } | undefined;

/** The smallest and the largest value, so that readers can skip the group. JSON has no order, and two booleans skip nothing. */
export function boundsOf(type: LeafType, values: readonly Stored[]): Bounds {
  if (values.length === 0 || type === 'json' || type === 'boolean') return undefined;
  return type === 'text' ? textBounds(values as string[]) : numberBounds(type, values as (number | bigint)[]);
}

function numberBounds(type: 'integer' | 'timestamp' | 'double', values: readonly (number | bigint)[]): Bounds {
  let [min = 0] = values;
  let max = min;
  for (const value of values) {
    if (value < min) min = value;
    else if (value > max) max = value;
  }
  const bound = (value: number | bigint): Bound => ({ bytes: plainBytes(PUT[type], value), isExact: true });
  // There are two zeros, and Parquet wants the bounds to hold both, whichever was met.
  if (type === 'double') return { min: bound(min === 0 ? -0 : min), max: bound(max === 0 ? 0 : max) };
  return { min: bound(min), max: bound(max) };
}

function textBounds(values: readonly string[]): Bounds {
  let min: string | undefined;
  let max: string | undefined;
  for (const value of values) {
    // As it will be stored: half a surrogate pair sorts elsewhere than the U+FFFD that is written for it.
    const text = value.isWellFormed() ? value : value.toWellFormed();
    if (min === undefined || compareText(text, min) < 0) min = text;
    if (max === undefined || compareText(text, max) > 0) max = text;
  }
  const upper = max === undefined ? undefined : cutUpwards(max);
  return min === undefined || upper === undefined ? undefined : { min: cutDownwards(min), max: upper };
}

/**
 * Parquet orders text by its UTF-8 bytes, which is the order of code points; JavaScript orders by UTF-16 units, where the
 * surrogates of 😀 come before ！ (U+FF01). A bound in the wrong order makes readers skip rows that are there.
 */
export function compareText(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // A surrogate stands for a code point above all that need none.
    if (isSurrogate(x) !== isSurrogate(y)) return isSurrogate(x) ? 1 : -1;
    return x - y;
  }
  return a.length - b.length;
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff;

/** A text that is smaller or equal, without half characters at its end. */
function cutDownwards(text: string): Bound {
  const points = cut(text);
  return { bytes: Buffer.from(points ?? text, 'utf8'), isExact: points === undefined };
}

/** A text that is larger: the last character that can be raised is raised, and what follows is cut off. */
function cutUpwards(text: string): Bound | undefined {
  const kept = cut(text);
  if (kept === undefined) return { bytes: Buffer.from(text, 'utf8'), isExact: true };
  const points = [...kept];
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const raised = (last.codePointAt(0) ?? 0) + 1;
    if (raised > LAST_CODE_POINT) continue;
    // Behind U+D7FF come the halves of pairs; one of those is written as U+FFFD, which is larger still.
    return { bytes: Buffer.from(points.join('') + String.fromCodePoint(raised), 'utf8'), isExact: false };
  }
  return undefined;
}

/** The beginning of a text that is too long for a bound; undefined for one that is not. */
function cut(text: string): string | undefined {
  if (text.length <= LONGEST) return undefined;
  const isPair = isSurrogate(text.charCodeAt(LONGEST - 1)) && text.charCodeAt(LONGEST - 1) < 0xdc00;
  return text.slice(0, isPair ? LONGEST - 1 : LONGEST);
}
