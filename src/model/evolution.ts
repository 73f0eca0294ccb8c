import { createHash } from 'node:crypto';
import { type Column, coerce, columnName, type Kind, MISMATCH, type Value } from './columns.ts';
import type { Row } from './flatten.ts';
import { parseInstant } from './instant.ts';
import { bare, isObject, type JsonObject, putIn } from './json.ts';
import type { Stream } from './streams.ts';

/** An undeclared field: named after its path, typed by the values seen, and widened when other values come. */
export interface EvolvedColumn {
  path: string;
  name: string;
  kind: Kind;
}

/** A schema change that a batch needs: a new column, or one that must be widened (`was`: its kind before). */
export interface SchemaChange extends EvolvedColumn {
  was: Kind | undefined;
}

/** Postgres allows 1,600 columns; a service that sends a new key with every event must not reach that. */
export const MOST_EVOLVED = 300;

const LONGEST_NAME = 63;

/** System columns of every Postgres table, and the folders of a lake, which readers show as columns in place of ours. */
const RESERVED: ReadonlySet<string> = new Set(['tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid', 'date', 'hour']);

/** The longest path to become a column: each is in the comment of a column and in every version of a table's metadata. */
const LONGEST_PATH = 1000;

/** The path must come back unchanged from the state, which refuses NUL and replaces half a character. */
const mayBeColumn = (path: string): boolean =>
  path.length <= LONGEST_PATH && path.isWellFormed() && !path.includes('\0');

export function kindOf(value: unknown): Kind | undefined {
  switch (typeof value) {
    case 'boolean':
      return 'boolean';
    case 'bigint':
      return BigInt.asIntN(64, value) === value ? 'integer' : 'number';
    case 'number':
      return Number.isSafeInteger(value) ? 'integer' : 'number';
    case 'string':
      if (value === '') return undefined;
      // Digits alone are not a date here: an id would become an instant.
      return /^\d{4}-\d\d-\d\d[T ]/.test(value) && parseInstant(value) !== undefined ? 'timestamp' : 'text';
    case 'object':
      return value === null ? undefined : 'json';
    default:
      return undefined;
  }
}

/** The narrowest kind that holds both without loss. */
export function widen(a: Kind, b: Kind): Kind {
  if (a === b) return a;
  if (a === 'json' || b === 'json') return 'json';
  const numbers: readonly Kind[] = ['integer', 'number'];
  return numbers.includes(a) && numbers.includes(b) ? 'number' : 'text';
}

export function findSchemaChanges(
  stream: Stream,
  known: readonly EvolvedColumn[],
  rows: readonly Row[],
): SchemaChange[] {
  const declared = declaredPaths(stream);
  const seen = new Map<string, Kind>();
  for (const { extra } of rows) {
    for (const { path, value } of leaves(extra ?? {})) {
      const isLeft = declared.has(path) || isEmptyParent(path, value) || !mayBeColumn(path);
      const kind = isLeft ? undefined : kindOf(value);
      if (kind === undefined) continue;
      const before = seen.get(path);
      seen.set(path, before === undefined ? kind : widen(before, kind));
    }
  }
  const byPath = new Map(known.map((column) => [column.path, column]));
  const taken = new Set([...stream.columns, ...known].map((column) => column.name));
  const changes: SchemaChange[] = [];
  let room = MOST_EVOLVED - known.length;
  // In order of the path, so that the same batch gives the same names everywhere.
  for (const [path, kind] of [...seen].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const column = byPath.get(path);
    if (column) {
      const wide = widen(column.kind, kind);
      if (wide !== column.kind) changes.push({ ...column, kind: wide, was: column.kind });
    } else if (room > 0) {
      room--;
      const name = nameFor(path, taken);
      taken.add(name);
      changes.push({ path, name, kind, was: undefined });
    }
  }
  return changes;
}

/** A legal and unique column name from a path. If the plain name is illegal or taken, a digest of the path is appended. */
export function nameFor(path: string, taken: ReadonlySet<string>): string {
  const plain = columnName(path);
  const safe = plain.replace(/[^a-z0-9_]/g, '_');
  const isFree = !taken.has(plain) && !RESERVED.has(plain);
  if (safe === plain && plain.length <= LONGEST_NAME && /^[a-z]/.test(plain) && isFree) return plain;
  const digest = createHash('sha256').update(path).digest('hex');
  const stem = safe.replace(/^[^a-z]+/, '') || 'field';
  // Longer only if another field already has the name with the digest.
  for (let length = 8; ; length++) {
    const name = `${stem.slice(0, LONGEST_NAME - 1 - length)}_${digest.slice(0, length)}`;
    if (!taken.has(name) || length === LONGEST_NAME - 2) return name;
  }
}

export function evolvedStream(stream: Stream, evolved: readonly EvolvedColumn[]): Stream {
  const columns = evolved.map(({ path, name, kind }): Column => {
    const isJoined = /^(?:link|customer)(?:\.|$)/.test(path);
    return {
      name,
      kind,
      from: [{ path }],
      nullable: true,
      ...(isJoined && { volatile: true as const }),
      doc: `Not in the contract; seen in the service's answers as ${path}.`,
    };
  });
  return { ...stream, columns: [...stream.columns, ...columns] };
}

/** Moves values that now have a column out of `_extra`. Rows without unknown fields only gain nulls. */
export function promote(stream: Stream, evolved: readonly EvolvedColumn[], rows: readonly Row[]): Row[] {
  if (evolved.length === 0) return [...rows];
  const declared = declaredPaths(stream);
  const byPath = new Map(evolved.map(({ path, kind }, i) => [path, { i, kind }]));
  return rows.map((row) => {
    const added = new Array<Value>(evolved.length).fill(null);
    const rest = bare();
    for (const { path, parent, key, value } of leaves(row.extra ?? {})) {
      const column = declared.has(path) || isEmptyParent(path, value) ? undefined : byPath.get(path);
      const fitting = column ? coerce(column.kind, value) : MISMATCH;
      if (column && fitting !== MISMATCH) added[column.i] = fitting;
      else putIn(rest, parent, key, value);
    }
    const extra = Object.keys(rest).length > 0 ? rest : null;
    return { ...row, values: [...row.values, ...added], extra };
  });
}

interface Leaf {
  path: string;
  parent: string | undefined;
  key: string;
  value: unknown;
}

/** The objects whose members are columns; any other object is a single value. */
const PARENTS: ReadonlySet<string> = new Set(['click', 'link', 'customer', 'sale']);

function* leaves(extra: JsonObject): Generator<Leaf> {
  for (const [key, value] of Object.entries(extra)) {
    if (!PARENTS.has(key) || !isObject(value) || Object.keys(value).length === 0) {
      yield { path: topPath(key), parent: undefined, key, value };
      continue;
    }
    for (const [inner, innerValue] of Object.entries(value)) {
      yield { path: `${key}.${inner}`, parent: key, key: inner, value: innerValue };
    }
  }
}

/** A key may hold a dot itself: `"click.ua"` at the top is another field than `ua` inside `click`. */
const topPath = (key: string): string => (PARENTS.has(key.split('.')[0] ?? '') ? key.replaceAll('.', '\\.') : key);

/** `sale: {}` is not a field; it stays where it is. */
const isEmptyParent = (path: string, value: unknown): boolean =>
  PARENTS.has(path) && isObject(value) && Object.keys(value).length === 0;

/** A declared column's value that did not fit (a type mismatch, a contradicting alias) stays in `_extra`: it needs no new column. */
const declaredPaths = (stream: Stream): ReadonlySet<string> =>
  new Set(stream.columns.flatMap((column) => column.from.map(({ path }) => path)));
