import { Bytes } from './bytes.ts';

/** Fewer equal values than this are packed bit by bit together with their neighbours. */
const RUN = 8;

/** Numbers of a few bits, such as levels and places in a dictionary. */
export type SmallNumbers = Uint8Array | Uint32Array;

/**
 * Parquet's hybrid of runs and bit packing. A run is its length and the value; everything else is packed in groups of eight.
 * Columns of events are often all null, never null, or the same for long: those cost a handful of bytes.
 */
export function encodeRuns(values: SmallNumbers, width: number): Uint8Array {
  const out = new Bytes();
  let at = 0;
  while (at < values.length) {
    const run = runFrom(values, at);
    if (run >= RUN || at + run === values.length) {
      out.varint(run * 2);
      writeValue(out, values[at] ?? 0, width);
      at += run;
    } else {
      const end = packedUntil(values, at);
      writePacked(out, values, at, end, width);
      at = end;
    }
  }
  return out.view();
}

function runFrom(values: SmallNumbers, at: number): number {
  let end = at + 1;
  while (end < values.length && values[end] === values[at]) end++;
  return end - at;
}

/** In steps of eight, because only the last group may be filled up. */
function packedUntil(values: SmallNumbers, at: number): number {
  let end = at + RUN;
  while (end < values.length && !isRun(values, end)) end += RUN;
  return Math.min(end, values.length);
}

function isRun(values: SmallNumbers, at: number): boolean {
  if (at + RUN > values.length) return false;
  for (let i = 1; i < RUN; i++) if (values[at + i] !== values[at]) return false;
  return true;
}

function writePacked(out: Bytes, values: SmallNumbers, at: number, end: number, width: number): void {
  const groups = Math.ceil((end - at) / RUN);
  out.varint(groups * 2 + 1);
  let bits = 0;
  let filled = 0;
  for (let i = at; i < at + groups * RUN; i++) {
    bits |= (i < end ? (values[i] ?? 0) : 0) << filled;
    for (filled += width; filled >= 8; filled -= 8) {
      out.uint8(bits & 0xff);
      bits >>>= 8;
    }
  }
}

function writeValue(out: Bytes, value: number, width: number): void {
  for (let shift = 0; shift < width; shift += 8) out.uint8((value >>> shift) & 0xff);
}

/** Bits that the numbers below `count` need; never none, which some readers do not expect. */
export const bitsFor = (count: number): number => Math.max(1, 32 - Math.clz32(count - 1));
