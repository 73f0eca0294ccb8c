import { createHmac } from 'node:crypto';
import { withDatabase } from '../database/index.ts';
import { quoteLiteral, raw, sql } from '../database/sql.ts';

/** A superuser may run programs as the server's user; whoever gets hold of a connection URL shall not. */
export const WORKING_ROLE = 'tributary_worker';
export const DATABASE = 'tributary';

/** Derived, so that there is one secret to keep. It does not lead back to the superuser's. */
export const workingPassword = (superuser: string): string =>
  createHmac('sha256', superuser).update(WORKING_ROLE).digest('base64url');

/** Any number; the lock is one of the database `postgres`. */
const SETUP_LOCK = 0x7472_6963;

/** Makes role and database where they are missing, and hands over what an earlier version made as the superuser. Safe to repeat, and by many at once. */
export async function prepareRole(urlOf: (database: string) => string, password: string): Promise<void> {
  const setup = (database: string) => ({ url: urlOf(database), name: 'tributary setup', max: 1 });
  await withDatabase(setup('postgres'), async (server) => {
    const session = await server.session();
    try {
      await session.query(sql`select pg_advisory_lock(${SETUP_LOCK})`);
      const [found] = await session.query<{
        role: boolean;
        owner: string | null;
      }>(sql`select exists (select from pg_roles where rolname = ${WORKING_ROLE}) as role,
        (select datdba::regrole::text from pg_database where datname = ${DATABASE}) as owner`);
      if (!found?.role)
        await session.query(sql`create role ${raw(WORKING_ROLE)} login password ${raw(quoteLiteral(password))}`);
      if (found?.owner == null) await session.query(sql`create database ${raw(DATABASE)} owner ${raw(WORKING_ROLE)}`);
      else if (found.owner !== WORKING_ROLE) {
        // The database last: as long as it is the superuser's, the next start hands over what is left.
        await withDatabase(setup(DATABASE), (database) => database.query({ text: HAND_OVER }));
        await session.query(sql`alter database ${raw(DATABASE)} owner to ${raw(WORKING_ROLE)}`);
      }
    } finally {
      await session.close();
    }
  });
}

/** REASSIGN OWNED refuses the first superuser, who owns the catalogue too. 10 is that user. Sequences of columns follow their table. */
const HAND_OVER = `
do $$
declare command text;
begin
  for command in
    select format('alter schema %I owner to ${WORKING_ROLE}', nspname) from pg_namespace
    where nspowner = 10 and nspname !~ '^pg_' and nspname <> 'information_schema'
    union all
    select format('alter %s %s owner to ${WORKING_ROLE}',
      case relkind when 'S' then 'sequence' when 'v' then 'view' when 'm' then 'materialized view' else 'table' end, c.oid::regclass)
    from pg_class c join pg_namespace n on n.oid = relnamespace
    where relowner = 10 and relkind in ('r', 'p', 'v', 'm', 'S') and nspname !~ '^pg_' and nspname <> 'information_schema'
      and not exists (select from pg_depend d where d.objid = c.oid and c.relkind = 'S' and d.deptype in ('a', 'i'))
    union all
    select format('alter routine %s owner to ${WORKING_ROLE}', p.oid::regprocedure)
    from pg_proc p join pg_namespace n on n.oid = pronamespace
    where proowner = 10 and nspname !~ '^pg_' and nspname <> 'information_schema'
    union all
    select format('alter type %s owner to ${WORKING_ROLE}', t.oid::regtype)
    from pg_type t join pg_namespace n on n.oid = typnamespace
    where typowner = 10 and typtype in ('e', 'd') and nspname !~ '^pg_' and nspname <> 'information_schema'
  loop execute command; end loop;
end $$`;
