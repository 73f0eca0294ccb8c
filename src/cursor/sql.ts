/** SQL is a function that returns this: text for the server, and values that never become part of the text. */
export interface Sql {
  text: string;
  values?: readonly unknown[];
}

/** The one helper that quotes identifiers. A name made of an API's field would otherwise be SQL of a stranger's choosing. */
export function quoteIdent(name: string): string {
  // Postgres ends a name at NUL and cuts it at 63 bytes, in silence: two long names could become one column.
  if (name === '' || name.includes('\0')) throw new RangeError('an SQL name must not be empty or hold a NUL character');
  if (Buffer.byteLength(name) > 63) throw new RangeError(`an SQL name longer than 63 bytes would be cut: ${name}`);
  return `"${name.replaceAll('"', '""')}"`;
}

/** For the places where Postgres takes no parameter: DDL, comments, settings. Everywhere else, use `values`. */
export function quoteLiteral(text: string): string {
  const doubled = text.replaceAll("'", "''");
  // The E form means the same whether or not standard_conforming_strings is on.
  return text.includes('\\') ? `E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`;
}

/** A timestamptz column as an instant. pg's Date cuts microseconds off: a window would grow by what was never read. */
export const instantOf = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`;
