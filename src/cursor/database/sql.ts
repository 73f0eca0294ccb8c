import { type Instant, toIso } from '../../model/instant.ts';

/** A statement and its parameters, which never become part of the text. The template tag `sql` creates it. */
export interface Sql {
  text: string;
  values?: readonly unknown[];
  /** For untrusted text: the server rejects anything but a single statement. */
  isSingle?: boolean;
  /** Columns that share a name are returned as `count`, `count_2` and so on; otherwise only the last of them is. */
  hasSameNames?: boolean;
}

/** A statement or a fragment of one: each interpolated value becomes a parameter, unless it is a fragment itself. */
class Statement implements Sql {
  readonly values: readonly unknown[];
  private readonly pieces: readonly string[];

  constructor(pieces: readonly string[], values: readonly unknown[]) {
    this.pieces = pieces;
    this.values = values;
  }

  get text(): string {
    return this.pieces.reduce((text, piece, i) => `${text}$${i}${piece}`);
  }

  toString(): string {
    return this.text;
  }

  static join(around: readonly string[], parts: readonly unknown[]): Statement {
    const pieces = [around[0] ?? ''];
    const add = (text: string): void => void pieces.push(`${pieces.pop()}${text}`);
    const values = parts.flatMap((part, i) => {
      const [first = '', ...more] = part instanceof Statement ? part.pieces : ['', ''];
      add(first);
      pieces.push(...more);
      add(around[i + 1] ?? '');
      return part instanceof Statement ? part.values : [part];
    });
    return new Statement(pieces, values);
  }
}

export const sql = (around: TemplateStringsArray, ...parts: readonly unknown[]): Sql => Statement.join(around, parts);

/** Trusted text as a fragment of a statement. Never pass text from outside. */
export const raw = (text: string | number): Sql => new Statement([String(text)], []);

/** The only helper that quotes identifiers. Unquoted, names derived from API fields would allow SQL injection. */
export function quoteIdent(name: string): string {
  // Postgres silently ends a name at NUL and truncates it at 63 bytes: two long names could become the same column.
  if (name === '' || name.includes('\0')) throw new RangeError('an SQL name must not be empty or hold a NUL character');
  if (Buffer.byteLength(name) > 63) throw new RangeError(`an SQL name longer than 63 bytes would be cut: ${name}`);
  return `"${name.replaceAll('"', '""')}"`;
}

export const nameIn = (schema: string, name: string): Sql => raw(`${quoteIdent(schema)}.${quoteIdent(name)}`);

/** For statements that take no parameters: DDL, comments, settings. Everywhere else, use `values`. */
export function quoteLiteral(text: string): string {
  const doubled = text.replaceAll("'", "''");
  // The E form means the same whether or not standard_conforming_strings is on.
  return text.includes('\\') ? `E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`;
}

/** A timestamptz column as an instant, with microseconds: pg's Date truncates them, so that a window could grow by unread time. */
export const instantOf = (column: string): Sql => raw(`(extract(epoch from ${column}) * 1000)::float8`);

/** A timestamptz column as ISO text in UTC, in the format of JSON. */
export const isoOf = (column: string): Sql =>
  raw(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`);

export const isoOrNull = (at: Instant | null | undefined): string | null =>
  at === null || at === undefined ? null : toIso(at);

export type Nulled<T> = { [K in keyof T]: undefined extends T[K] ? Exclude<T[K], undefined> | null : T[K] };

/** Replaces null by undefined in a row. */
export const defined = <T extends object>(row: Nulled<T>): T =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value ?? undefined])) as T;

/** Postgres rejects NUL, and jsonb also lone surrogates: one such character would make a batch fail at every retry. */
const REPLACEMENT = '\ufffd';

export function storableText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  return whole.includes('\0') ? whole.replaceAll('\0', REPLACEMENT) : whole;
}

/** Matches every escape, so that the `u0000` after an escaped backslash stays; in one pass, as metadata may be a megabyte. */
export function storableJson(text: string): string {
  if (!text.includes('\\u')) return text;
  return text.replace(/\\(?:u(?:0000|d[89a-f][0-9a-f]{2})|[\\"/bfnrtu])/gi, (pair) =>
    pair.length > 2 ? REPLACEMENT : pair,
  );
}
