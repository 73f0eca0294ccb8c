import { join } from 'node:path';
import { connect } from '../../src/cursor/database/index.ts';
import { queryDuckdb } from '../../test/support/lake-readers.ts';
import type { Place } from './places.ts';
import type { Service } from './service.ts';
import type { Command } from './watched.ts';

/** Folders of Python programs. The Parquet target requires access to GitHub. */
export interface Python {
  main: string;
  parquet: string | undefined;
}

export interface Job {
  place: Place;
  service: Service;
  perSecond: number | null;
  python: Python;
}

/** One tool with one destination. */
export interface Tool {
  name: 'Tributary' | 'dlt' | 'Singer';
  into: string;
  /** Speeds are compared within a kind. */
  kind: 'Postgres' | 'Parquet';
  /** Prepares the tool's configuration and returns its command; called before each sync. */
  sync(job: Job): Promise<Command>;
  /** The id of every row in the destination, with duplicates. */
  ids(job: Job): Promise<string[]>;
}

/** How far before its cursor a tool rereads, if configurable: Tributary's default. */
export const LOOKBACK_SECONDS = 900;

export const lakeOf = ({ place }: Job): string => join(place.dir, 'lake');

export async function idsInTable({ place }: Job, table: string, column: string): Promise<string[]> {
  const db = connect({ url: place.databaseUrl, max: 1 });
  try {
    const rows = await db.query<{ id: string }>({ text: `select "${column}" as id from ${table}` });
    return rows.map(({ id }) => id);
  } finally {
    await db.close();
  }
}

export async function idsInFiles(glob: string, column: string): Promise<string[]> {
  const rows = await queryDuckdb(`select "${column}" as id from read_parquet('${glob}')`);
  return rows.map(({ id }) => String(id));
}
