import type { Kind } from './columns.ts';
import { parseInstant } from './instant.ts';

/** What a row holds: text, integers (exact), booleans, instants as numbers, JSON as parsed. */
export type Value = string | number | bigint | boolean | null | object;

/** Says that a value does not fit its column; the caller keeps the value elsewhere. Distinct from null, which is "none". */
export const MISFIT = Symbol('misfit');

export type Coerced = Value | typeof MISFIT;

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);

/** How each kind reads a value. Absent, null and, except in text, "" all mean none. */
export const COERCIONS: Readonly<Record<Kind, (value: unknown) => Coerced>> = {
  text: (value) => (typeof value === 'string' ? value : isAbsent(value) ? null : scalarText(value)),
  integer: (value) => (isAbsent(value) || value === '' ? null : toInteger(value)),
  boolean: (value) => (isAbsent(value) || value === '' ? null : (BOOLEANS.get(value) ?? MISFIT)),
  timestamp: (value) => (isAbsent(value) || value === '' ? null : (parseInstant(value) ?? MISFIT)),
  json: (value) => (isAbsent(value) || value === '' ? null : (value as Value)),
};

/** Reads a value as the kind of its column. */
export const coerce = (kind: Kind, value: unknown): Coerced => COERCIONS[kind](value);

/** Where a service has nothing to say it writes null, "" or an empty list; the deprecated field may say more. */
export const isNone = (value: Value): boolean =>
  value === null || value === '' || (Array.isArray(value) && value.length === 0);

const isAbsent = (value: unknown): value is undefined | null => value === undefined || value === null;

const scalarText = (value: unknown): Coerced => (typeof value === 'object' ? MISFIT : String(value));

function toInteger(value: unknown): Coerced {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : MISFIT;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'string' && /^-?\d{1,19}$/.test(value)) return toInteger(BigInt(value));
  if (typeof value !== 'bigint' || value > INT64_MAX || value < INT64_MIN) return MISFIT;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

const BOOLEANS = new Map<unknown, boolean>([
  [true, true],
  [1, true],
  ['1', true],
  ['true', true],
  [false, false],
  [0, false],
  ['0', false],
  ['false', false],
]);
