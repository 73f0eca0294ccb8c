import type { Kind } from './columns.ts';
import { parseInstant } from './instant.ts';

/** What a row holds: text, integers (exact), booleans, instants as numbers, JSON as parsed. */
export type Value = string | number | bigint | boolean | null | object;

/** Says that a value does not fit its column; the caller keeps the value elsewhere. Distinct from null, which is "none". */
export const MISFIT = Symbol('misfit');

export type Coerced = Value | typeof MISFIT;

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);

/** Reads a value as the kind of its column. Absent, null and, except in text, "" all mean none. */
export function coerce(kind: Kind, value: unknown): Coerced {
  if (value === undefined || value === null) return null;
  if (kind === 'text') return typeof value === 'string' ? value : scalarText(value);
  if (value === '') return null;
  switch (kind) {
    case 'integer':
      return toInteger(value);
    case 'number':
      return toNumber(value);
    case 'boolean':
      return typeof value === 'boolean' ? value : (BOOLEANS.get(value) ?? MISFIT);
    case 'timestamp':
      return parseInstant(value) ?? MISFIT;
    case 'json':
      return value as Value;
  }
}

/** Where a service has nothing to say it writes null, "" or an empty list; the deprecated field may say more. */
export const isNone = (value: Value): boolean =>
  value === null || value === '' || (Array.isArray(value) && value.length === 0);

const scalarText = (value: unknown): Coerced => (typeof value === 'object' ? MISFIT : String(value));

function toInteger(value: unknown): Coerced {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : MISFIT;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'string' && /^-?\d{1,19}(\.0+)?$/.test(value))
    return toInteger(BigInt(value.replace(/\..*/, '')));
  if (typeof value !== 'bigint' || value > INT64_MAX || value < INT64_MIN) return MISFIT;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** What comes closest to a value that does not fit: a sum without it would run low. Null where nothing does. */
export function nearest(kind: Kind, value: unknown): Value {
  const number = typeof value === 'string' && /^-?\d{1,15}\.\d+$/.test(value) ? Number(value) : value;
  if (kind !== 'integer' || typeof number !== 'number') return null;
  const rounded = Math.sign(number) * Math.round(Math.abs(number));
  return Number.isSafeInteger(rounded) ? rounded + 0 : null;
}

const BOOLEANS = new Map<unknown, boolean>([
  [1, true],
  ['1', true],
  ['true', true],
  [0, false],
  ['0', false],
  ['false', false],
]);

/** Any JSON number; the integers among them stay exact. */
function toNumber(value: unknown): Coerced {
  if (typeof value === 'number') return Number.isFinite(value) ? value : MISFIT;
  return typeof value === 'bigint' ? value : MISFIT;
}
