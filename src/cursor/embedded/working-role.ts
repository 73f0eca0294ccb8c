import { createHmac } from 'node:crypto';
import { withDatabase } from '../database/index.ts';
import { quoteLiteral, raw, sql } from '../database/sql.ts';

/** A superuser may run programs as the server's user; a connection URL that leaks must not allow that. */
export const WORKING_ROLE = 'tributary_worker';
export const DATABASE = 'tributary';

/** Derived from the superuser's password, so that only one secret is stored, and not reversible. */
export const workingPassword = (superuser: string): string =>
  createHmac('sha256', superuser).update(WORKING_ROLE).digest('base64url');

/** An arbitrary key. The lock is held in the database `postgres`. */
const SETUP_LOCK = 0x7472_6963;

/** Creates role and database if they are missing. Idempotent, also with concurrent callers. */
export async function prepareRole(urlOf: (database: string) => string, password: string): Promise<void> {
  await withDatabase({ url: urlOf('postgres'), name: 'tributary setup', max: 1 }, async (server) => {
    const session = await server.session();
    try {
      await session.query(sql`select pg_advisory_lock(${SETUP_LOCK})`);
      const [found] = await session.query<{ role: boolean; database: boolean }>(sql`
        select exists (select from pg_roles where rolname = ${WORKING_ROLE}) as role,
          exists (select from pg_database where datname = ${DATABASE}) as database`);
      if (!found?.role)
        await session.query(sql`create role ${raw(WORKING_ROLE)} login password ${raw(quoteLiteral(password))}`);
      if (!found?.database) await session.query(sql`create database ${raw(DATABASE)} owner ${raw(WORKING_ROLE)}`);
    } finally {
      await session.close();
    }
  });
}
