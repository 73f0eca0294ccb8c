import type { Sql } from '../../cursor/database/sql.ts';
import type { Kind } from '../../model/columns.ts';

/** A view for people who ask questions: in Postgres, and over the files of a lake in DuckDB. */
export interface View {
  name: string;
  doc: string;
  /** Its columns in their order, each with a sentence. */
  columns: Readonly<Record<string, string>>;
  query: string;
  /** The tables and views that show the same to whoever may read them. */
  reads: readonly string[];
}

/** What differs between the databases. Everything is SQL. */
export interface Dialect {
  table(name: string): Sql;
  types: Readonly<Record<Kind, string>>;
  /** The UTC day of an event in the table that goes by this alias, in the form that an index or the folders know. */
  utcDate(alias: string): string;
  /** The UTC day of any instant. */
  utcDay(instant: string): string;
  /** Whether a UTC day is complete in every stream of its source: what to join, and the condition. */
  isComplete(source: string, date: string): { join: string; is: string };
  /** When a day of a stream was first complete: what to join, and the moment. Not every database knows. */
  completeAt?(stream: string, alias: string): { join: string; at: string };
}
