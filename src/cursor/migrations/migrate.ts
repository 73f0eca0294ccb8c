import { createHash } from 'node:crypto';
import { ConfigError, type Finding, failing, findingOf, note, ok } from '../../model/errors.ts';
import { type Database, ifTable, type Queryable, type Transaction } from '../database/index.ts';
import { quoteIdent, raw, sql } from '../database/sql.ts';

/** One step forward. Once released it is history: a correction is a new step. */
export interface Migration {
  version: number;
  name: string;
  /** Gets the schema's name as SQL writes it. */
  sql: (schema: string) => string;
}

type Applied = { version: number; name: string; checksum: string };
type Steps = readonly Migration[];

/** Brings the schema up to date; returns the versions applied now. Safe to run twice, and by several processes at once. */
export async function migrate(db: Database, migrations: Steps, { schema }: { schema: string }): Promise<number[]> {
  const done: number[] = [];
  const steps = [...migrations].sort((a, b) => a.version - b.version);
  for (;;) {
    // One transaction a step: it is applied and recorded, or neither, wherever a crash falls.
    const version = await db.transaction((tx) => nextStep(tx, steps, schema));
    if (version === undefined) return done;
    done.push(version);
  }
}

async function appliedTo(db: Queryable, steps: Steps, schema: string): Promise<number[]> {
  const applied = await db.query<Applied>(
    sql`SELECT version, name, checksum FROM ${raw(quoteIdent(schema))}.migrations ORDER BY version`,
  );
  for (const past of applied) checkPast(past, steps, schema);
  return applied.map(({ version }) => version);
}

async function nextStep(tx: Transaction, steps: Steps, schema: string): Promise<number | undefined> {
  const [home, table] = [quoteIdent(schema), `${quoteIdent(schema)}.migrations`];
  // To the end of the transaction. Two processes that find the same step missing would both apply it.
  await tx.query(sql`SELECT pg_advisory_xact_lock(hashtextextended(${`migrate ${schema}`}, 0))`);
  const [found] = await tx.query<{ home: string | null; table: string | null }>(
    sql`SELECT to_regnamespace(${home}) AS home, to_regclass(${table}) AS table`,
  );
  // Not IF NOT EXISTS: that asks for the right to create even where an administrator has made the schema for us.
  if (!found?.home) await tx.query({ text: `CREATE SCHEMA ${home}` });
  if (!found?.table) {
    const columns =
      'version int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL';
    await tx.query({ text: `CREATE TABLE ${table} (${columns} DEFAULT now())` });
  }
  const applied = await appliedTo(tx, steps, schema);
  const step = steps.find(({ version }) => !applied.includes(version));
  if (step === undefined) return undefined;
  await tx.query({ text: step.sql(home) });
  await tx.query(
    sql`INSERT INTO ${raw(table)} (version, name, checksum) VALUES (${step.version}, ${step.name}, ${checksum(step)})`,
  );
  return step.version;
}

function checkPast({ version, name, ...past }: Applied, steps: Steps, schema: string): void {
  // A step before the first was folded into it.
  if (steps.every((step) => version < step.version)) return;
  const step = steps.find((candidate) => candidate.version === version);
  if (step !== undefined && checksum(step) === past.checksum) return;
  const [what, next] =
    step === undefined
      ? ['was written by a newer tributary, which has', 'upgrade tributary, or point state.url at another database']
      : ['was written by a tributary with another', 'put the released migration back; write the change as a new one'];
  throw new ConfigError(`the state in schema "${schema}" ${what} migration ${version} (${name})`, {
    kept: 'nothing was changed',
    next,
  });
}

/** Of the text for one fixed name, so that it is the same in every schema; line ends and indentation do not count. */
const checksum = ({ sql }: Migration): string =>
  createHash('sha256')
    .update(sql(quoteIdent('schema')).replace(/\s+/g, ' ').trim())
    .digest('hex');

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
  const [server] = await db.query<{ version: string; number: number }>(
    sql`select current_setting('server_version') as version, current_setting('server_version_num')::int as number`,
  );
  const says = `${name} answers (Postgres ${server?.version.split(' ')[0]})`;
  if ((server?.number ?? 0) >= OLDEST_MAJOR * 10_000) return ok(subject, says);
  return failing(subject, `${says}, which is too old`, `use Postgres ${OLDEST_MAJOR} or newer`);
}

/** A replica, or a server that was made read-only: everything can be read there, and the first write fails. */
async function writableFinding(db: Queryable, subject: string): Promise<Finding> {
  const [server] = await db.query<{ replica: boolean; locked: boolean }>(
    sql`select pg_is_in_recovery() as replica, current_setting('transaction_read_only')::bool as locked`,
  );
  if (!server?.replica && !server?.locked) return ok(subject, 'can be written');
  const says = server.replica ? 'is a replica, which is read-only' : 'is read-only (default_transaction_read_only)';
  const fix = 'point the database URL at the primary, or wait until the failover is over';
  return { level: 'fault', subject, says, fix, fixBy: 'later' };
}

async function rightsFinding(db: Queryable, subject: string): Promise<Finding> {
  type Found = { user: string; database: string; create: boolean; exists: boolean; use: boolean | null };
  const home = sql`to_regnamespace(${STATE_SCHEMA})`;
  const [may] = await db.query<Found>(sql`
    select current_user as user, current_database() as database,
      has_database_privilege(current_database(), 'create') as create,
      ${home} is not null as exists, has_schema_privilege(${home}, 'create, usage') as use`);
  if (may?.exists ? may.use : may?.create) return ok(subject, `user ${may?.user} may create its tables`);
  const where = may?.exists ? `schema ${STATE_SCHEMA}` : `database "${may?.database}"`;
  const fix = may?.exists
    ? `grant usage, create on schema ${STATE_SCHEMA} to "${may.user}"`
    : `grant create on database "${may?.database}" to "${may?.user}"`;
  return failing(subject, `user ${may?.user} may not create tables in ${where}`, fix);
}

async function migrationsFinding(db: Database, subject: string, migrations: readonly Migration[]): Promise<Finding> {
  const applied = await ifTable(db, 'migrations', () => appliedTo(db, migrations, STATE_SCHEMA));
  if (applied.length === 0) return ok(subject, 'empty: the first sync makes its tables');
  const due = migrations.filter(({ version }) => !applied.includes(version)).length;
  if (due === 0) return ok(subject, `its tables are up to date (version ${Math.max(...applied)})`);
  return note(
    subject,
    `its tables are ${due} ${due === 1 ? 'version' : 'versions'} behind`,
    'none needed: the next sync brings them up to date',
  );
}
