import { parseInstant } from './instant.ts';

/** Each field is a line in `streams.ts`: DDL, COPY, flattening, comments, docs and privacy are derived from it. */

/** The logical type of a column; each sink maps it to a type of its own. */
export type Kind = 'text' | 'integer' | 'number' | 'boolean' | 'timestamp' | 'json';

/** The sort of personal data; `privacy` in the config sets the treatment of each. */
export type Personal = 'linkPassword' | 'ip' | 'customer';

/** Converts a value of another shape; `other` is the value under the field's second name, if any. */
type Via = (value: unknown, other: unknown) => unknown;

/** Where a value comes from: a path in the record, and how to read it if the shape differs. */
interface Origin {
  path: string;
  via?: Via;
}

export interface Column {
  name: string;
  kind: Kind;
  /** The canonical path first, then its deprecated alias. */
  from: readonly Origin[];
  nullable: boolean;
  deprecated?: string;
  /** Joined when the event is read (link, customer): it changes on its own and never makes an event "changed". */
  volatile?: true;
  personal?: Personal;
  doc: string;
}

export interface Field {
  path: string;
  kind: Kind;
  doc: string;
  required?: true;
  volatile?: true;
  personal?: Personal;
  /** The deprecated name of the same value. */
  alias?: string | Alias;
}

interface Alias {
  path: string;
  kind: Kind;
  /** Only if the two differ in shape, not merely in type. */
  toAlias?: Via;
  toCanonical?: Via;
}

/** `click.refererUrl` → `click_referer_url`: the API's path in snake_case. */
export function columnName(path: string): string {
  return path
    .replaceAll('.', '_')
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase();
}

/** A field is one column, or two if its deprecated alias has another column name. Aliases come after all canonical columns. */
export function toColumns(fields: readonly Field[]): Column[] {
  return [...fields.map(canonicalColumn), ...fields.flatMap(aliasColumn)];
}

function canonicalColumn(field: Field): Column {
  const alias = aliasOf(field);
  return {
    name: columnName(field.path),
    kind: field.kind,
    from: alias ? [{ path: field.path }, origin(alias.path, alias.toCanonical)] : [{ path: field.path }],
    nullable: !field.required,
    ...marks(field),
    doc: field.doc,
  };
}

function aliasColumn(field: Field): Column[] {
  const alias = aliasOf(field);
  const canonical = columnName(field.path);
  // `click.id` and its alias `click_id` are the same column: nothing to add.
  if (!alias || columnName(alias.path) === canonical) return [];
  return [
    {
      name: columnName(alias.path),
      kind: alias.kind,
      from: [origin(field.path, alias.toAlias), { path: alias.path }],
      nullable: true,
      deprecated: canonical,
      ...marks(field),
      doc: field.doc,
    },
  ];
}

function aliasOf(field: Field): Alias | undefined {
  return typeof field.alias === 'string' ? { path: field.alias, kind: field.kind } : field.alias;
}

const origin = (path: string, via?: Via): Origin => (via ? { path, via } : { path });

const marks = (field: Field): Pick<Column, 'volatile' | 'personal'> => ({
  ...(field.volatile && { volatile: true }),
  ...(field.personal && { personal: field.personal }),
});

/** A value of a row: text, integers (exact), booleans, instants as numbers, JSON as parsed. */
export type Value = string | number | bigint | boolean | null | object;

/** Marks a value that does not fit its column; the caller keeps it elsewhere. Distinct from null, which means "none". */
export const MISMATCH = Symbol('mismatch');

type Coerced = Value | typeof MISMATCH;

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
      return typeof value === 'boolean' ? value : (BOOLEANS.get(value) ?? MISMATCH);
    case 'timestamp':
      return parseInstant(value) ?? MISMATCH;
    case 'json':
      return value as Value;
  }
}

/** A service writes null, "" or an empty list for "none"; the deprecated field may still have a value. */
export const isNone = (value: Value): boolean =>
  value === null || value === '' || (Array.isArray(value) && value.length === 0);

const scalarText = (value: unknown): Coerced => (typeof value === 'object' ? MISMATCH : String(value));

function toInteger(value: unknown): Coerced {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : MISMATCH;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'string' && /^-?\d{1,19}(\.0+)?$/.test(value))
    return toInteger(BigInt(value.replace(/\..*/, '')));
  if (typeof value !== 'bigint' || value > INT64_MAX || value < INT64_MIN) return MISMATCH;
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** The nearest value that fits, so that sums do not run low; null if there is none. */
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

/** Any JSON number; integers stay exact. */
function toNumber(value: unknown): Coerced {
  if (typeof value === 'number') return Number.isFinite(value) ? value : MISMATCH;
  return typeof value === 'bigint' ? value : MISMATCH;
}
