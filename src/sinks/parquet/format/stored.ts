import type { Value } from '../../../model/coerce.ts';
import type { Leaf, Stored } from './leaves.ts';

/** One leaf of a group: which rows have a value (1) and which none (0), and the values without the gaps. */
export interface StoredLeaf {
  levels: Uint8Array;
  values: Stored[];
}

export function storeLeaf(
  { name, type, column, nullable, store }: Leaf,
  rows: ReadonlyArray<readonly Value[]>,
): StoredLeaf {
  const levels = new Uint8Array(rows.length);
  const values: Stored[] = [];
  for (let row = 0; row < rows.length; row++) {
    const value = rows[row]?.[column] ?? null;
    const stored = value === null ? null : store(value);
    if (stored === null) continue;
    // The value itself stays out of the message: it may be anybody's name.
    if (stored === undefined) throw new TypeError(`column ${name} (${type}) cannot hold this ${typeof value}`);
    levels[row] = 1;
    values.push(stored);
  }
  if (!nullable && values.length < rows.length) throw new TypeError(`column ${name} must have a value in every row`);
  return { levels, values };
}

/** An integer is a number as long as that is exact. */
export function restoreInteger(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** A double carries microseconds up to 2^43 ms from 1970; instants beyond are whole milliseconds. */
const EXACT_MICROS = 2n ** 43n * 1000n;

export const restoreInstant = (micros: bigint): number =>
  micros < EXACT_MICROS && micros > -EXACT_MICROS ? Number(micros) / 1000 : Number(micros / 1000n);
