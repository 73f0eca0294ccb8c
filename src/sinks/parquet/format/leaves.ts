import type { Kind, Value } from '../../../model/columns.ts';
import { stringifyJson } from '../../../model/json.ts';
import type { FileColumn } from './types.ts';

/**
 * A leaf is a column as Parquet knows it. Every column of ours is one leaf, except those of numbers, which are two.
 *
 * A number of JSON is a double or, from 2^53 on, an exact integer of any length. No type of Parquet holds both: DOUBLE bends
 * 9007199254740993, and DECIMAL has no room for 0.0033333333333333335 beside it. As text they would be exact, and every sum in a BI
 * tool would break the day a column of integers gets its first fraction. So a number stands in a DOUBLE, and where that is not the
 * whole truth `_exact_<name>` has all the digits. Columns of the service never begin with an underscore.
 */
export interface Leaf {
  name: string;
  type: LeafType;
  nullable: boolean;
  fieldId?: number | undefined;
  isUnordered?: true | undefined;
  /** Which of the file's columns it belongs to. */
  column: number;
  /** What stands in the file for a value; null for nothing, undefined for a value that is not of this column's kind. */
  store: (value: Value) => Stored | null | undefined;
}

export type LeafType = 'text' | 'json' | 'integer' | 'timestamp' | 'double' | 'boolean';

export type Stored = string | number | bigint | boolean;

export const exactName = (name: string): string => `_exact_${name}`;

export function leavesOf(columns: readonly FileColumn[]): Leaf[] {
  return columns.flatMap(({ name, kind, nullable, fieldIds, isUnordered }, column): Leaf[] => {
    const [fieldId, exactId] = fieldIds ?? [];
    if (kind !== 'number') return [{ name, type: kind, nullable, fieldId, isUnordered, column, store: STORE[kind] }];
    return [
      // An integer of four hundred digits has no double at all.
      { name, type: 'double', nullable: true, fieldId, column, store: storeDouble },
      { name: exactName(name), type: 'text', nullable: true, fieldId: exactId, column, store: storeDigits },
    ];
  });
}

const STORE: Readonly<Record<Exclude<Kind, 'number'>, Leaf['store']>> = {
  text: (value) => (typeof value === 'string' ? value : undefined),
  integer: (value) => (isInt64(value) ? value : undefined),
  boolean: (value) => (typeof value === 'boolean' ? value : undefined),
  timestamp: (value) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined),
  json: (value) => wellFormed(stringifyJson(value)),
};

const isInt64 = (value: Value): value is number | bigint =>
  typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value);

function storeDouble(value: Value): number | null | undefined {
  // Adding zero makes -0 the zero that Postgres and JSON take it for; a dictionary could not tell them apart.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : undefined;
  if (typeof value !== 'bigint') return undefined;
  const nearest = Number(value);
  return Number.isFinite(nearest) ? nearest : null;
}

const storeDigits = (value: Value): string | null => (typeof value === 'bigint' ? String(value) : null);

/** JSON.stringify escapes half a surrogate pair, which few parsers take. Escapes are read in pairs: `\\ud800` is none. */
function wellFormed(json: string): string {
  if (!json.includes('\\ud')) return json;
  return json.replace(/\\(?:ud[89a-f][0-9a-f]{2}|.)/g, (pair) => (pair.length > 2 ? '\ufffd' : pair));
}

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
