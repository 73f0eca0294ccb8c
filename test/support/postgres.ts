import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { quoteIdent } from '../../src/cursor/database/sql.ts';

export interface TestDatabase {
  url: string;
  /** Also ends connections that are still open, so that a leaked one does not block the run. */
  drop(): Promise<void>;
}

/** A new database for a test file, by default on the run's server from `global-postgres.ts`. */
export const freshDatabase = (server = inject('postgresUrl')): Promise<TestDatabase> => copyOf('template1', server);

/** The same with the migrated state's tables. */
export const stateDatabase = (): Promise<TestDatabase> => copyOf(inject('stateTemplate'), inject('postgresUrl'));

/** A copy of its present contents; it must have no connections. */
export const copyDatabase = ({ url }: TestDatabase): Promise<TestDatabase> =>
  copyOf(new URL(url).pathname.slice(1), inject('postgresUrl'));

async function copyOf(template: string, server: string): Promise<TestDatabase> {
  const name = `test_${process.pid}_${randomBytes(6).toString('hex')}`;
  const url = new URL(server);
  await onServer(server, `CREATE DATABASE ${quoteIdent(name)} TEMPLATE ${quoteIdent(template)}`);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => onServer(server, `DROP DATABASE ${quoteIdent(name)} WITH (FORCE)`) };
}

async function onServer(url: string, text: string): Promise<void> {
  const db = connect({ url, max: 1, name: 'test' });
  try {
    await db.query({ text });
  } finally {
    await db.close();
  }
}
