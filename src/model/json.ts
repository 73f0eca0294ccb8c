import { createHash, randomUUID } from 'node:crypto';
import { BadRecord } from './errors.ts';

/**
 * JSON.parse silently turns 9007199254740993 into …992: such integers become BigInt here, and are written back as the same digits. 1e400,
 * or a number that no database holds, becomes text. Until Node 20 is gone (`context.source` needs 21), marked strings carry them through
 * JSON.parse. The mark is new in each process: third parties write metadata, and could use a known one to forge numbers or break pages.
 */
const MARK = `int:${randomUUID()}:`;

/** Digits of the longest integer that Postgres stores, in `numeric` and in jsonb; one more would fail its batch for ever. */
export const LONGEST_INTEGER = 131_072;

/** A string's start, an integer of 16 digits or more as a value, or what may exceed a double. Invalid JSON stays so. */
const STRING_OR_LARGE = /"|(?<![\d.eE+-])-?(?:[1-9]\d{15,}|(?:0|[1-9]\d*)(?:\.\d+)?[eE]\+?\d{3,})(?=\s*(?:[,\]}]|$))/g;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, 'g');

export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (!mayBeRounded(value)) return value;
  const marked = markLargeNumbers(text);
  return marked === text ? value : unmark(JSON.parse(marked));
}

/** Whether a parsed number may differ from the written one. Checking values takes half as long as checking the text. */
function mayBeRounded(root: unknown): boolean {
  const open: object[] = [[root]];
  for (let object = open.pop(); object; object = open.pop()) {
    for (const value of Array.isArray(object) ? object : Object.values(object)) {
      if (typeof value === 'object' && value !== null) open.push(value);
      else if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER) return true;
    }
  }
  return false;
}

/** Skips strings by hand: a pattern that matches a string of ten megabytes overflows the stack. */
function markLargeNumbers(text: string): string {
  const token = new RegExp(STRING_OR_LARGE);
  let marked = '';
  let done = 0;
  for (let match = token.exec(text); match; match = token.exec(text)) {
    const [found] = match;
    if (found === '"') {
      token.lastIndex = endOfString(text, match.index);
    } else if (/[eE]/.test(found) ? !Number.isFinite(Number(found)) : !Number.isSafeInteger(Number(found))) {
      // 1e400 is valid JSON, but would become Infinity, which is written as null: it is kept as text.
      const isText = /[eE]/.test(found) || found.replace('-', '').length > LONGEST_INTEGER;
      marked += `${text.slice(done, match.index)}"${isText ? '' : MARK}${found}"`;
      done = token.lastIndex;
    }
  }
  return done === 0 ? text : marked + text.slice(done);
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end + 1;
}

/** A quote is escaped by an odd number of backslashes before it. */
function isEscaped(text: string, quote: number): boolean {
  let first = quote;
  while (text[first - 1] === '\\') first--;
  return (quote - first) % 2 === 1;
}

/** Not a reviver of JSON.parse: that recurses and overflows the stack on nesting that JSON.parse itself accepts. */
function unmark(root: unknown): unknown {
  const holder = { root };
  const open: Record<string, unknown>[] = [holder];
  for (let object = open.pop(); object; object = open.pop()) {
    for (const [key, value] of Object.entries(object)) {
      if (typeof value === 'object' && value !== null) open.push(value as Record<string, unknown>);
      else if (typeof value === 'string' && value.startsWith(MARK)) object[key] = BigInt(value.slice(MARK.length));
    }
  }
  return holder.root;
}

/** Plain JSON.stringify is five times faster than with a replacer. BigInt is rare, and makes it throw. */
export function stringifyJson(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, undefined, indent);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    // Recovery: the value contains a BigInt, which is written as a marked string.
    const text = JSON.stringify(
      value,
      (_key, inner) => (typeof inner === 'bigint' ? `${MARK}${inner}` : inner),
      indent,
    );
    return text.replace(MARKED, '$1');
  }
}

/** Collects `_extra`: values that no column takes are kept at their own paths. */
export type JsonObject = Record<string, unknown>;

export interface Extra {
  /** Keeps a value under its key, at the top or inside `parent`. */
  put(parent: string | undefined, key: string, value: unknown): void;
  /** Everything kept, or null if the columns took everything. */
  take(): JsonObject | null;
}

/** Removes personal data from a value before it is kept in `_extra`; returns undefined if nothing is left. */
export type Withhold = (parent: string | undefined, key: string, value: unknown) => unknown;

/** Objects are made without a prototype, so that a key called `__proto__` is a key like any other. */
export function createExtra(withhold: Withhold): Extra {
  let kept: JsonObject | null = null;
  return {
    put(parent, key, value) {
      refuseTooDeep(value);
      const rest = withhold(parent, key, value);
      if (rest === undefined) return;
      kept ??= bare();
      putIn(kept, parent, key, rest);
    },
    take: () => kept,
  };
}

export const bare = (): JsonObject => Object.create(null) as JsonObject;

export function putIn(object: JsonObject, parent: string | undefined, key: string, value: unknown): void {
  if (parent === undefined) {
    object[key] = value;
    return;
  }
  const nested = isObject(object[parent]) ? object[parent] : bare();
  nested[key] = value;
  object[parent] = nested;
}

const shared = new WeakSet<object>();

/** Marks an object that many records share and nobody changes. */
export function share<T extends object>(object: T): T {
  shared.add(object);
  return object;
}

export const isShared = (object: object): boolean => shared.has(object);

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Assigns each key to a column, or keeps it in `extra`. Looking up every path on its own takes three times as long. */
export type Walk = ReturnType<typeof createWalk>;

export interface WalkedLink {
  link: JsonObject;
  /** As `Walk.read` returns them. */
  raw: readonly unknown[];
  unknown: ReadonlyArray<readonly [key: string, value: unknown]>;
}

type Place = number | Lookup<number>;

/** Columns read at most two levels: `timestamp`, `click.id`. */
export function createWalk(paths: Iterable<string>) {
  const known = [...new Set(paths)];
  const top = createLookup(positionsOf(known));

  return {
    /** The position of a path's value in what `read` returns. */
    placeOf: (path: string): number => known.indexOf(path),
    read(record: JsonObject, extra: Extra, link?: WalkedLink | null): unknown[] {
      const raw = link ? link.raw.slice() : new Array<unknown>(known.length).fill(undefined);
      const keys = Object.keys(record);
      const values = Object.values(record);
      for (let i = 0; i < keys.length; i++) {
        const key = keys[i] as string;
        const value = values[i];
        const place = top(i, key);
        if (typeof place === 'number') raw[place] = value;
        else if (place === undefined) extra.put(undefined, key, value);
        else if (link && value === link.link)
          for (const [inner, unknown] of link.unknown) extra.put(key, inner, unknown);
        else if (isObject(value)) readInside(key, value, place, raw, extra);
        // A string or a list in place of an object is kept whole; null and "" mean none.
        else if (value !== null && value !== '') extra.put(undefined, key, value);
      }
      return raw;
    },
  };
}

function readInside(parent: string, object: JsonObject, at: Lookup<number>, raw: unknown[], extra: Extra): void {
  const keys = Object.keys(object);
  const values = Object.values(object);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    const place = at(i, key);
    if (place === undefined) extra.put(parent, key, values[i]);
    else raw[place] = values[i];
  }
}

type Lookup<T> = (i: number, key: string) => T | undefined;

/** Nearly all records have their keys in the same order: the i-th key of the last one is tried first. */
function createLookup<T>(known: ReadonlyMap<string, T>): Lookup<T> {
  const lastKeys: string[] = [];
  const lastFound: (T | undefined)[] = [];
  return (i, key) => {
    if (lastKeys[i] !== key) {
      // A record with countless keys must not fill the memory.
      if (i > lastKeys.length || i > 1000) return known.get(key);
      lastKeys[i] = key;
      lastFound[i] = known.get(key);
    }
    return lastFound[i];
  };
}

function positionsOf(paths: readonly string[]): ReadonlyMap<string, Place> {
  const top = new Map<string, Place>();
  const nested = new Map<string, Map<string, number>>();
  paths.forEach((path, i) => {
    const [first = '', second] = path.split('.');
    if (second === undefined) top.set(first, i);
    else nested.set(first, (nested.get(first) ?? new Map()).set(second, i));
  });
  for (const [parent, positions] of nested) top.set(parent, createLookup(positions));
  return top;
}

/** Renames fields to names that a sink can store. Names that would collide get a digest: otherwise a field would be lost. */
export function renameFields(value: unknown, storable: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((inner) => renameFields(inner, storable));
  if (!isObject(value)) return value;
  const uses = new Map<string, number>();
  for (const key of Object.keys(value)) uses.set(storable(key), (uses.get(storable(key)) ?? 0) + 1);
  const renamed = bare();
  for (const [key, inner] of Object.entries(value)) {
    const name = storable(key);
    const isOther = name !== key && (uses.get(name) ?? 0) > 1;
    renamed[isOther ? `${name}_${digestOf(key)}` : name] = renameFields(inner, storable);
  }
  return renamed;
}

/** The digest of its UTF-16 units: in UTF-8, all lone surrogates are alike. */
const digestOf = (key: string): string =>
  createHash('sha256').update(Buffer.from(key, 'utf16le')).digest('hex').slice(0, 8);

/** JSON.stringify and Postgres overflow their stacks after some thousand levels. No real data is nested so deeply. */
const DEEPEST = 500;

export function refuseTooDeep(value: unknown): void {
  if (isDeeper(value, DEEPEST)) throw new BadRecord(`the record is nested deeper than ${DEEPEST} levels`);
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const inner of Array.isArray(value) ? value : Object.values(value)) if (isDeeper(inner, levels - 1)) return true;
  return false;
}
