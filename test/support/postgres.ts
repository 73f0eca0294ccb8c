import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { quoteIdent } from '../../src/cursor/database/sql.ts';

export interface TestDatabase {
  url: string;
  /** Ends connections that are still open, too: a test that leaks one shall not hide behind this, but the run goes on. */
  drop(): Promise<void>;
}

/** A database of its own for each test file, on the server that `global-postgres.ts` started for the run unless another is given. */
export const freshDatabase = (server = inject('postgresUrl')): Promise<TestDatabase> => copyOf('template1', server);

/** The same with the state's tables in it, as a migration makes them. */
export const stateDatabase = (): Promise<TestDatabase> => copyOf(inject('stateTemplate'), inject('postgresUrl'));

/** As it is now; nobody may be connected to it. */
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
