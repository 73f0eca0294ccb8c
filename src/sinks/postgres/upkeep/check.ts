import type { Database } from '../../../cursor/database/index.ts';
import { nameIn, quoteIdent, sql } from '../../../cursor/database/sql.ts';
import { versionFinding } from '../../../cursor/migrations/migrate.ts';
import { type Finding, findingOf, note, ok } from '../../../model/errors.ts';
import { type Viewed, viewsOf } from '../views.ts';
import { findViewFaults } from './keep-views.ts';
import { ensureSchema } from './prepare.ts';

/** Tests the operations of a commit (create, write, read) in a transaction that is rolled back. */
export async function checkPostgres(warehouse: Viewed & { db: Database }, subject: string, place: string) {
  const { db, schema } = warehouse;
  const findings: Finding[] = [];
  try {
    findings.push(await versionFinding(db, subject, place));
    await tryOut(db, schema);
    findings.push(ok(subject, `schema ${schema}: can create, write and read`));
    const unwritable = await unwritableTables(db, schema);
    if (unwritable.length > 0) {
      findings.push({
        level: 'fault',
        subject,
        says: `may not write ${unwritable.map((table) => `${schema}.${table}`).join(', ')}`,
        fix: `grant select, insert, update, delete on all tables in schema ${quoteIdent(schema)} to this user, or make it their owner`,
        fixBy: 'config',
      });
    }
    for (const { says, fix } of await findViewFaults(db, schema, viewsOf(warehouse)))
      findings.push(note(subject, says, fix));
  } catch (error) {
    findings.push(findingOf(subject, error));
  }
  return findings;
}

async function tryOut(db: Database, schema: string): Promise<void> {
  const tx = await db.begin();
  try {
    await ensureSchema(tx, schema);
    const probe = nameIn(schema, 'tributary_doctor');
    await tx.query(sql`create table ${probe} (n int)`);
    await tx.query(sql`insert into ${probe} values (1)`);
    await tx.query(sql`select n from ${probe}`);
  } finally {
    await tx.rollback();
  }
}

async function unwritableTables(db: Database, schema: string): Promise<string[]> {
  const rows = await db.query<{ name: string }>(sql`
    select c.relname as name from pg_class c
    where c.relnamespace = to_regnamespace(${quoteIdent(schema)}) and c.relkind in ('r', 'p')
      and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
        and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
    order by 1`);
  return rows.map(({ name }) => name);
}
