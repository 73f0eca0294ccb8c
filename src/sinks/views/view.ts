import type { Sql } from '../../cursor/database/sql.ts';
import type { Kind } from '../../model/columns.ts';

/** A view for analysts: in Postgres, and in DuckDB over the files of a lake. */
export interface View {
  name: string;
  doc: string;
  /** The columns in their order, with descriptions. */
  columns: Readonly<Record<string, string>>;
  query: string;
  /** Tables and views with the same data: roles that may read all of them may read this view. */
  reads: readonly string[];
}

/** SQL that differs between the databases. */
export interface Dialect {
  table(name: string): Sql;
  types: Readonly<Record<Kind, string>>;
  /** The UTC day of an event in the table with this alias, in the form that an index or the folders have. */
  utcDate(alias: string): string;
  /** The UTC day of any instant. */
  utcDay(instant: string): string;
  /** Whether a UTC day is complete in every stream of its source: a join and a condition. */
  isComplete(source: string, date: string): { join: string; is: string };
  /** When a day of a stream was first complete: a join and an expression. DuckDB does not have it. */
  completeAt?(stream: string, alias: string): { join: string; at: string };
}
