import { Bytes } from './bytes.ts';
import type { LeafType, Stored } from './leaves.ts';

/** How a value stands in a page when nothing is done to it. Booleans do not stand alone: see `packBits`. */
export type Put = (out: Bytes, value: Stored) => void;

export const PUT: Readonly<Record<Exclude<LeafType, 'boolean'>, Put>> = {
  text: (out, value) => out.text(value as string),
  json: (out, value) => out.text(value as string),
  integer: (out, value) => (typeof value === 'bigint' ? putBigInt(out, value) : putInteger(out, value as number)),
  timestamp: (out, value) => putMicros(out, value as number),
  double: (out, value) => out.double(value as number),
};

const HALF = 2 ** 32;

function putInteger(out: Bytes, value: number): void {
  const high = Math.floor(value / HALF);
  out.int64(high, value - high * HALF);
}

const putBigInt = (out: Bytes, value: bigint): void =>
  out.int64(Number(value >> 32n), Number(BigInt.asUintN(32, value)));

/**
 * Milliseconds with a fraction become whole microseconds, in halves of 32 bits: the year 9999 is beyond what a double holds in
 * microseconds, and a BigInt for each of nine instants a row would be the slowest part of all.
 */
function putMicros(out: Bytes, instant: number): void {
  const whole = Math.floor(instant);
  const high = Math.floor(whole / HALF);
  const low = (whole - high * HALF) * 1000 + Math.round((instant - whole) * 1000);
  const carry = Math.floor(low / HALF);
  out.int64(high * 1000 + carry, low - carry * HALF);
}

/** Eight booleans a byte, the first in the lowest bit. */
export function packBits(values: readonly Stored[]): Uint8Array {
  const packed = new Uint8Array(Math.ceil(values.length / 8));
  values.forEach((value, i) => {
    if (value === true) packed[i >> 3] = (packed[i >> 3] ?? 0) | (1 << (i & 7));
  });
  return packed;
}

export function plainBytes(put: Put, value: Stored): Uint8Array {
  const out = new Bytes();
  put(out, value);
  // A copy of its own: the view would keep a kilobyte alive for each bound of each column of each group.
  return new Uint8Array(out.view());
}
