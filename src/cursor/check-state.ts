import { type Finding, findingOf, note, ok } from '../model/finding.ts';
import type { Database, Queryable } from './database.ts';
import { listMigrations, type Migration } from './migrate.ts';

const STATE_SCHEMA = 'tributary';

/** What stock servers are tested with. */
const OLDEST_MAJOR = 15;

/** Whether the state's database is there, young enough, ours to write, and up to date. Changes nothing. */
export async function checkState(db: Database, migrations: readonly Migration[], name: string): Promise<Finding[]> {
  const subject = 'state';
  try {
    return [
      await versionFinding(db, subject, name),
      await writableFinding(db, subject),
      await rightsFinding(db, subject),
      await migrationsFinding(db, subject, migrations),
    ];
  } catch (error) {
    return [findingOf(subject, error)];
  }
}

export async function versionFinding(db: Queryable, subject: string, name: string): Promise<Finding> {
  const [server] = await db.query<{ version: string; number: number }>({
    text: `select current_setting('server_version') as version, current_setting('server_version_num')::int as number`,
  });
  const says = `${name} answers (Postgres ${server?.version.split(' ')[0]})`;
  if ((server?.number ?? 0) >= OLDEST_MAJOR * 10_000) return ok(subject, says);
  const fix = `use Postgres ${OLDEST_MAJOR} or newer`;
  return { level: 'fault', subject, says: `${says}, which is too old`, fix, mend: 'config' };
}

/** A replica, or a server that was made read-only: everything can be read there, and the first write fails. */
export async function writableFinding(db: Queryable, subject: string): Promise<Finding> {
  const [server] = await db.query<{ replica: boolean; locked: boolean }>({
    text: `select pg_is_in_recovery() as replica, current_setting('transaction_read_only')::bool as locked`,
  });
  if (!server?.replica && !server?.locked) return ok(subject, 'can be written');
  const says = server.replica ? 'is a replica, which is read-only' : 'is read-only (default_transaction_read_only)';
  const fix = 'point the database URL at the primary, or wait until the failover is over';
  return { level: 'fault', subject, says, fix, mend: 'later' };
}

async function rightsFinding(db: Queryable, subject: string): Promise<Finding> {
  const [may] = await db.query<{
    user: string;
    database: string;
    create: boolean;
    exists: boolean;
    use: boolean | null;
  }>({
    text: `
      select current_user as user, current_database() as database,
        has_database_privilege(current_database(), 'create') as create,
        to_regnamespace($1) is not null as exists, has_schema_privilege(to_regnamespace($1), 'create, usage') as use`,
    values: [STATE_SCHEMA],
  });
  if (may?.exists ? may.use : may?.create) return ok(subject, `user ${may?.user} may create its tables`);
  const where = may?.exists ? `schema ${STATE_SCHEMA}` : `database "${may?.database}"`;
  const fix = may?.exists
    ? `grant usage, create on schema ${STATE_SCHEMA} to "${may.user}"`
    : `grant create on database "${may?.database}" to "${may?.user}"`;
  return { level: 'fault', subject, says: `user ${may?.user} may not create tables in ${where}`, fix, mend: 'config' };
}

async function migrationsFinding(db: Database, subject: string, migrations: readonly Migration[]): Promise<Finding> {
  const applied = await listMigrations(db, migrations, { schema: STATE_SCHEMA });
  if (applied.length === 0) return ok(subject, 'empty: the first sync makes its tables');
  const due = migrations.length - applied.length;
  if (due === 0) return ok(subject, `its tables are up to date (version ${Math.max(...applied)})`);
  return note(
    subject,
    `its tables are ${due} ${due === 1 ? 'version' : 'versions'} behind`,
    'none needed: the next sync brings them up to date',
  );
}
