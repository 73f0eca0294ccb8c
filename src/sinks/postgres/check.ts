import { versionFinding } from '../../cursor/check-state.ts';
import type { Database } from '../../cursor/database.ts';
import { quoteIdent } from '../../cursor/sql.ts';
import { type Finding, findingOf, ok } from '../../model/finding.ts';

/** Tries out what a commit does, in a transaction that is rolled back: create, write, read. */
export async function checkPostgres(db: Database, schema: string, subject: string, place: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  try {
    findings.push(await versionFinding(db, subject, place));
    await tryOut(db, schema);
    findings.push(ok(subject, `schema ${schema}: can create, write and read`));
    const locked = await tablesNotOurs(db, schema);
    if (locked.length > 0) {
      findings.push({
        level: 'fault',
        subject,
        says: `may not write ${locked.map((table) => `${schema}.${table}`).join(', ')}`,
        fix: `grant select, insert, update, delete on all tables in schema ${quoteIdent(schema)} to this user, or make it their owner`,
        mend: 'config',
      });
    }
  } catch (error) {
    findings.push(findingOf(subject, error));
  }
  return findings;
}

async function tryOut(db: Database, schema: string): Promise<void> {
  const tx = await db.begin();
  try {
    const [found] = await tx.query<{ schema: string | null }>({
      text: 'select to_regnamespace($1)::text as schema',
      values: [quoteIdent(schema)],
    });
    if (!found?.schema) await tx.query({ text: `create schema ${quoteIdent(schema)}` });
    const probe = `${quoteIdent(schema)}.tributary_doctor`;
    await tx.query({ text: `create table ${probe} (n int)` });
    await tx.query({ text: `insert into ${probe} values (1)` });
    await tx.query({ text: `select n from ${probe}` });
  } finally {
    await tx.rollback();
  }
}

/** Tables that are there already may belong to somebody else. */
async function tablesNotOurs(db: Database, schema: string): Promise<string[]> {
  const rows = await db.query<{ name: string }>({
    text: `
      select c.relname as name from pg_class c
      where c.relnamespace = to_regnamespace($1) and c.relkind in ('r', 'p')
        and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
          and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
      order by 1`,
    values: [quoteIdent(schema)],
  });
  return rows.map(({ name }) => name);
}
