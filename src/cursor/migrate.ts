import { createHash } from 'node:crypto';
import { ConfigError } from '../model/errors.ts';
import type { Database, Transaction } from './database.ts';
import { quoteIdent } from './sql.ts';

/** One step forward. Once released it is history: a correction is a new step. */
export interface Migration {
  version: number;
  name: string;
  /** Gets the schema's name as it is; the text must quote it. */
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

/** The versions that the schema has, checked but not changed: none where there is no schema yet. */
export async function listMigrations(
  db: Database,
  migrations: Steps,
  { schema }: { schema: string },
): Promise<number[]> {
  const table = `${quoteIdent(schema)}.migrations`;
  const [found] = await db.query<{ table: string | null }>({
    text: 'SELECT to_regclass($1) AS table',
    values: [table],
  });
  if (!found?.table) return [];
  const applied = await db.query<Applied>({ text: `SELECT version, name, checksum FROM ${table} ORDER BY version` });
  for (const past of applied) checkPast(past, migrations, schema);
  return applied.map(({ version }) => version);
}

async function nextStep(tx: Transaction, steps: Steps, schema: string): Promise<number | undefined> {
  const [home, table] = [quoteIdent(schema), `${quoteIdent(schema)}.migrations`];
  // To the end of the transaction. Two processes that find the same step missing would both apply it.
  await tx.query({ text: 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', values: [`migrate ${schema}`] });
  const [found] = await tx.query<{ home: string | null; table: string | null }>({
    text: 'SELECT to_regnamespace($1) AS home, to_regclass($2) AS table',
    values: [home, table],
  });
  // Not IF NOT EXISTS: that asks for the right to create even where an administrator has made the schema for us.
  if (!found?.home) await tx.query({ text: `CREATE SCHEMA ${home}` });
  if (!found?.table) {
    const columns =
      'version int PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL';
    await tx.query({ text: `CREATE TABLE ${table} (${columns} DEFAULT now())` });
  }
  const applied = await tx.query<Applied>({ text: `SELECT version, name, checksum FROM ${table} ORDER BY version` });
  for (const past of applied) checkPast(past, steps, schema);
  const step = steps.find(({ version }) => !applied.some((past) => past.version === version));
  if (step === undefined) return undefined;
  await tx.query({ text: step.sql(schema) });
  await tx.query({
    text: `INSERT INTO ${table} (version, name, checksum) VALUES ($1, $2, $3)`,
    values: [step.version, step.name, checksum(step)],
  });
  return step.version;
}

function checkPast({ version, name, ...past }: Applied, steps: Steps, schema: string): void {
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
  createHash('sha256').update(sql('schema').replace(/\s+/g, ' ').trim()).digest('hex');
