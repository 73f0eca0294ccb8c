import { type Instant, toIso } from '../../model/instant.ts';

/** Text for the server, and values that never become part of the text: `sql` makes it of a template. */
export interface Sql {
  text: string;
  values?: readonly unknown[];
  /** Anything but one statement is refused by the server: for text that is not ours. */
  isSingle?: boolean;
  /** Columns that share a name are `count`, `count_2` and so on, instead of the last of them. */
  hasSameNames?: boolean;
}

/** A statement, or a part of one: what a template holds becomes a value of its own, unless it is a part itself. */
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

/** Text of our own as a part of a statement. Never a stranger's. */
export const raw = (text: string | number): Sql => new Statement([String(text)], []);

/** The one helper that quotes identifiers. A name made of an API's field would otherwise be SQL of a stranger's choosing. */
export function quoteIdent(name: string): string {
  // Postgres ends a name at NUL and cuts it at 63 bytes, in silence: two long names could become one column.
  if (name === '' || name.includes('\0')) throw new RangeError('an SQL name must not be empty or hold a NUL character');
  if (Buffer.byteLength(name) > 63) throw new RangeError(`an SQL name longer than 63 bytes would be cut: ${name}`);
  return `"${name.replaceAll('"', '""')}"`;
}

export const nameIn = (schema: string, name: string): Sql => raw(`${quoteIdent(schema)}.${quoteIdent(name)}`);

/** For the places where Postgres takes no parameter: DDL, comments, settings. Everywhere else, use `values`. */
export function quoteLiteral(text: string): string {
  const doubled = text.replaceAll("'", "''");
  // The E form means the same whether or not standard_conforming_strings is on.
  return text.includes('\\') ? `E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`;
}

/** A timestamptz column as an instant. pg's Date cuts microseconds off: a window would grow by what was never read. */
export const instantOf = (column: string): Sql => raw(`(extract(epoch from ${column}) * 1000)::float8`);

/** The same as text, in UTC, as JSON writes it. */
export const isoOf = (column: string): Sql =>
  raw(`to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`);

export const isoOrNull = (at: Instant | null | undefined): string | null =>
  at === null || at === undefined ? null : toIso(at);

export type Nulled<T> = { [K in keyof T]: undefined extends T[K] ? Exclude<T[K], undefined> | null : T[K] };

/** A row as the program has it: what is null there is undefined here. */
export const defined = <T extends object>(row: Nulled<T>): T =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value ?? undefined])) as T;

/** Postgres refuses NUL, and jsonb lone surrogates too: one such character would fail a batch for ever. */
const REPLACEMENT = '\ufffd';

export function storableText(text: string): string {
  const whole = text.isWellFormed() ? text : text.toWellFormed();
  return whole.includes('\0') ? whole.replaceAll('\0', REPLACEMENT) : whole;
}

/** Escapes are read in pairs, so that a backslash before `u0000` stays; in one pass, as metadata may be a megabyte. */
export function storableJson(text: string): string {
  if (!text.includes('\\u')) return text;
  return text.replace(/\\(?:u(?:0000|d[89a-f][0-9a-f]{2})|[\\"/bfnrtu])/gi, (pair) =>
    pair.length > 2 ? REPLACEMENT : pair,
  );
}
