import { Bytes } from './bytes.ts';
import type { Bound, LeafType, Stored } from './types.ts';

/** Writes a value in plain encoding. Booleans are bit-packed elsewhere. */
type Put = (out: Bytes, value: Stored) => void;

export const PUT: Readonly<Record<Exclude<LeafType, 'boolean'>, Put>> = {
  text: (out, value) => out.text(value as string),
  json: (out, value) => out.text(value as string),
  integer: (out, value) => (typeof value === 'bigint' ? putBigInt(out, value) : putInteger(out, value as number)),
  timestamp: (out, value) => putMicros(out, value as number),
  double: (out, value) => out.appendFloat64(value as number),
};

const HALF = 2 ** 32;

function putInteger(out: Bytes, value: number): void {
  const high = Math.floor(value / HALF);
  out.int64(high, value - high * HALF);
}

const putBigInt = (out: Bytes, value: bigint): void =>
  out.int64(Number(value >> 32n), Number(BigInt.asUintN(32, value)));

/** In halves of 32 bits: a double does not hold the year 9999 in microseconds, and a BigInt for each would be slow. */
function putMicros(out: Bytes, instant: number): void {
  const whole = Math.floor(instant);
  const high = Math.floor(whole / HALF);
  const low = (whole - high * HALF) * 1000 + Math.round((instant - whole) * 1000);
  const carry = Math.floor(low / HALF);
  out.int64(high * 1000 + carry, low - carry * HALF);
}

export function plainBytes(put: Put, value: Stored): Uint8Array {
  const out = new Bytes();
  put(out, value);
  // Copied, because a view would keep a kilobyte alive for each bound of each column of each row group.
  return new Uint8Array(out.getBytes());
}

/** The bit width of numbers below `count`; at least one, because some readers do not accept zero. */
export const bitsFor = (count: number): number => Math.max(1, 32 - Math.clz32(count - 1));

export interface Dictionary {
  entries: Stored[];
  indexes: Uint32Array;
}

/** If most of the first values are distinct, the column gets no dictionary. */
const PROBE = 1000;
const MOST_ENTRIES = 2 ** 16;

/** A dictionary stores each distinct value once. If half of the values are distinct (ids, times), it would only add to the size. */
export function findDictionary(values: readonly Stored[]): Dictionary | undefined {
  const known = new Map<Stored, number>();
  const indexes = new Uint32Array(values.length);
  const most = Math.min(values.length / 2, MOST_ENTRIES);
  let last: Stored | undefined;
  let index = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as Stored;
    if (value !== last) {
      index = known.get(value) ?? known.size;
      if (index === known.size) {
        if (index >= most || (i === PROBE && index > PROBE * 0.8)) return undefined;
        known.set(value, index);
      }
      last = value;
    }
    indexes[i] = index;
  }
  return known.size === 0 ? undefined : { entries: [...known.keys()], indexes };
}

/** Most characters of a text bound: longer ones enlarge the footer without helping readers. */
const LONGEST = 64;
const LAST_CODE_POINT = 0x10ffff;

type Bounds = { min: Bound; max: Bound } | undefined;

/** The smallest and the largest value, so that readers can skip the row group. JSON has no order, and booleans would skip nothing. */
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
  // There are two zeros, and Parquet requires bounds to include both.
  if (type === 'double') return { min: bound(min === 0 ? -0 : min), max: bound(max === 0 ? 0 : max) };
  return { min: bound(min), max: bound(max) };
}

function textBounds(values: readonly string[]): Bounds {
  let min: string | undefined;
  let max: string | undefined;
  for (const value of values) {
    // Compared as stored: half a surrogate pair sorts differently from the U+FFFD that replaces it.
    const text = value.isWellFormed() ? value : value.toWellFormed();
    if (min === undefined || compareText(text, min) < 0) min = text;
    if (max === undefined || compareText(text, max) > 0) max = text;
  }
  const upper = max === undefined ? undefined : cutUpwards(max);
  return min === undefined || upper === undefined ? undefined : { min: cutDownwards(min), max: upper };
}

/**
 * Parquet orders text by its UTF-8 bytes, which is the order of code points; JavaScript orders by UTF-16 units, where the
 * surrogates of 😀 come before ！ (U+FF01). A bound in the wrong order makes readers skip rows that match.
 */
export function compareText(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // A surrogate means a code point above all others.
    if (isSurrogate(x) !== isSurrogate(y)) return isSurrogate(x) ? 1 : -1;
    return x - y;
  }
  return a.length - b.length;
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff;

/** A text that is smaller or equal, and does not end within a surrogate pair. */
function cutDownwards(text: string): Bound {
  const points = cut(text);
  return { bytes: Buffer.from(points ?? text, 'utf8'), isExact: points === undefined };
}

/** A text that is larger or equal: if it is cut, the last character that can be incremented is, and the rest is dropped. */
function cutUpwards(text: string): Bound | undefined {
  const kept = cut(text);
  if (kept === undefined) return { bytes: Buffer.from(text, 'utf8'), isExact: true };
  const points = [...kept];
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const raised = (last.codePointAt(0) ?? 0) + 1;
    if (raised > LAST_CODE_POINT) continue;
    // U+D7FF becomes a surrogate, which is written as U+FFFD, a larger character.
    return { bytes: Buffer.from(points.join('') + String.fromCodePoint(raised), 'utf8'), isExact: false };
  }
  return undefined;
}

/** The start of a text that is too long for a bound; undefined if it is short enough. */
function cut(text: string): string | undefined {
  if (text.length <= LONGEST) return undefined;
  const isPair = isSurrogate(text.charCodeAt(LONGEST - 1)) && text.charCodeAt(LONGEST - 1) < 0xdc00;
  return text.slice(0, isPair ? LONGEST - 1 : LONGEST);
}
