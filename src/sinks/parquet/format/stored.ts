import type { Value } from '../../../model/coerce.ts';
import type { Kind } from '../../../model/columns.ts';
import { stringifyJson } from '../../../model/json.ts';
import type { FileColumn } from './types.ts';

/**
 * What stands in a file for a value. Three physical types carry the six kinds:
 *
 * - text and JSON are text;
 * - integers and instants (microseconds since 1970 UTC) are 64 bits;
 * - booleans are bits;
 * - numbers are text, too: the digits as JSON writes them. A DOUBLE would bend 9007199254740993, a DECIMAL has no room for
 *   0.0033333333333333335 beside it, and a column that came as a fraction once can get either tomorrow. Text loses neither;
 *   whoever calculates says `x::double` or `x::decimal(38, 9)` and chooses what to lose.
 */
export type Physical = 'text' | 'int64' | 'bit';

export type Stored = string | number | bigint | boolean;

export const PHYSICAL: Readonly<Record<Kind, Physical>> = {
  text: 'text',
  integer: 'int64',
  number: 'text',
  boolean: 'bit',
  timestamp: 'int64',
  json: 'text',
};

/** One column of a group: which rows have a value (1) and which none (0), and the values without the gaps. */
export interface StoredColumn {
  levels: Uint8Array;
  values: Stored[];
}

export function storeColumn(column: FileColumn, at: number, rows: ReadonlyArray<readonly Value[]>): StoredColumn {
  const store = STORE[column.kind];
  const levels = new Uint8Array(rows.length);
  const values: Stored[] = [];
  for (let row = 0; row < rows.length; row++) {
    const value = rows[row]?.[at] ?? null;
    if (value === null) continue;
    levels[row] = 1;
    const stored = store(value);
    // The value itself stays out of the message: it may be anybody's name.
    if (stored === undefined)
      throw new TypeError(`column ${column.name} holds ${column.kind}, not this ${typeof value}`);
    values.push(stored);
  }
  if (!column.nullable && values.length < rows.length) {
    throw new TypeError(`column ${column.name} must have a value in every row`);
  }
  return { levels, values };
}

const STORE: Readonly<Record<Kind, (value: Value) => Stored | undefined>> = {
  text: (value) => (typeof value === 'string' ? value : undefined),
  integer: (value) => (isInt64(value) ? value : undefined),
  number: (value) =>
    typeof value === 'bigint' ? String(value) : typeof value === 'number' ? digits(value) : undefined,
  boolean: (value) => (typeof value === 'boolean' ? value : undefined),
  timestamp: (value) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined),
  json: (value) => wellFormed(stringifyJson(value)),
};

const isInt64 = (value: Value): value is number | bigint =>
  typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value);

/** Doubles beyond 2^53 get an exponent, so that they do not come back as the exact integers they are not. */
function digits(value: number): string | undefined {
  if (!Number.isFinite(value)) return undefined;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : String(value);
}

/** JSON.stringify escapes half a surrogate pair, which few parsers take. Escapes are read in pairs: `\\ud800` is none. */
function wellFormed(json: string): string {
  if (!json.includes('\\ud')) return json;
  return json.replace(/\\(?:ud[89a-f][0-9a-f]{2}|.)/g, (pair) => (pair.length > 2 ? '\ufffd' : pair));
}

/** Back from the digits: those of an integer are exact. */
export const restoreNumber = (text: string): number | bigint =>
  /^-?\d+$/.test(text) ? restoreInteger(BigInt(text)) : Number(text);

/** An integer is a number as long as that is exact. */
export function restoreInteger(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** A double carries microseconds up to 2^43 ms from 1970; instants beyond are whole milliseconds. */
const EXACT_MICROS = 2n ** 43n * 1000n;

export const restoreInstant = (micros: bigint): number =>
  micros < EXACT_MICROS && micros > -EXACT_MICROS ? Number(micros) / 1000 : Number(micros / 1000n);
