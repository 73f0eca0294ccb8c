import { createHash } from 'node:crypto';
import type { Queryable } from '../../../cursor/database/index.ts';
import { nameIn, quoteIdent, quoteLiteral, raw, type Sql, sql } from '../../../cursor/database/sql.ts';
import type { View } from '../../views/view.ts';

/** A view that is out of date and could not be replaced. Nothing but the view itself is affected. */
export interface ViewFault {
  view: string;
  says: string;
  fix: string;
}

/** Creates or replaces outdated views. A view that fails is reported and everything else continues: rows must not be lost for a view. */
export async function keepViews(tx: Queryable, schema: string, views: readonly View[]): Promise<ViewFault[]> {
  const faults: ViewFault[] = [];
  const present = await describeViews(tx, schema, views);
  for (const view of views) {
    const there = present.get(view.name);
    if (there && isCurrent(view, there)) continue;
    await tx.query(sql`savepoint a_view`);
    try {
      await makeView(tx, schema, view, there);
    } catch (error) {
      // Recovery: the view stays as it is. Only for errors about the view itself: a lost connection ends the transaction.
      const fault = faultOf(error, schema, view);
      if (!fault) throw error;
      await tx.query(sql`rollback to savepoint a_view`);
      faults.push(fault);
    }
  }
  return faults;
}

export async function findViewFaults(db: Queryable, schema: string, views: readonly View[]): Promise<ViewFault[]> {
  const present = await describeViews(db, schema, views);
  return views.flatMap((view) => {
    const there = present.get(view.name);
    if (!there || isCurrent(view, there)) return [];
    const says = `${schema}.${view.name} differs from the view that this version creates`;
    return [{ view: view.name, says, fix: 'the next sync replaces it, or reports why it cannot' }];
  });
}

async function makeView(tx: Queryable, schema: string, view: View, present: PresentView | undefined): Promise<void> {
  const name = nameIn(schema, view.name);
  const definition = raw(`${viewDefinition(schema, view)}\n${addRule(schema, view)}`);
  try {
    await tx.query(definition);
  } catch (error) {
    // Recovery: `create or replace` cannot change columns. A view of ours is dropped and created again, with its grants.
    if ((error as { code?: string }).code !== OTHER_COLUMNS || !SHAPE.test(present?.comment ?? '')) throw error;
    await tx.query(sql`rollback to savepoint a_view; drop view ${name}`);
    await tx.query(definition);
    for (const grant of present?.grants ?? []) await tx.query(grantOn(name, grant));
  }
  if (!present) for (const grant of await grantsBeside(tx, schema, view)) await tx.query(grantOn(name, grant));
}

interface Grant {
  /** Null: public. */
  role: string | null;
  privilege: string;
  isGrantable: boolean;
}

interface PresentView {
  comment: string | null;
  /** A digest of the stored view definition: `create or replace` by somebody else leaves our comment. */
  rule: string;
  grants: Grant[];
}

const GRANTS = `jsonb_build_object('role', case when a.grantee = 0 then null else a.grantee::regrole::text end,
  'privilege', a.privilege_type, 'isGrantable', a.is_grantable)`;

/** Eight digits of a digest of the stored definition of the view `c`. */
const RULE = `(select left(md5(string_agg(r.ev_action::text, '' order by r.oid)), 8) from pg_rewrite r where r.ev_class = c.oid)`;

async function describeViews(db: Queryable, schema: string, views: readonly View[]): Promise<Map<string, PresentView>> {
  const names = views.map(({ name }) => name);
  const found = await db.query<PresentView & { name: string }>(sql`
    select c.relname as name, obj_description(c.oid, 'pg_class') as comment, coalesce(${raw(RULE)}, '') as rule,
      (select coalesce(jsonb_agg(${raw(GRANTS)}), '[]') from aclexplode(c.relacl) a where a.grantee <> c.relowner) as grants
    from pg_class c where c.relnamespace = to_regnamespace(${quoteIdent(schema)}) and c.relname = any(${names})`);
  return new Map(found.map((view) => [view.name, view]));
}

/** Grants for a new view: roles that may read everything that it reads may read the view. */
function grantsBeside(tx: Queryable, schema: string, { reads }: View): Promise<Grant[]> {
  return tx.query<Grant>(sql`
    select case when a.grantee = 0 then null else a.grantee::regrole::text end as role, 'SELECT' as privilege, false as "isGrantable"
    from pg_class c, aclexplode(c.relacl) a
    where c.relnamespace = to_regnamespace(${quoteIdent(schema)}) and c.relname = any(${reads}) and a.privilege_type = 'SELECT'
      and a.grantee <> c.relowner
    group by a.grantee having count(distinct c.oid) = ${reads.length}`);
}

/** `regrole` has already quoted the name if needed. */
const grantOn = (name: Sql, { role, privilege, isGrantable }: Grant): Sql =>
  raw(`grant ${privilege} on ${name} to ${role ?? 'public'}${isGrantable ? ' with grant option' : ''}`);

const SHAPE = /Shape ([0-9a-f]{12})(?:\/([0-9a-f]{8}))?\.$/;

/** The comment has a digest of our text and one of Postgres' stored definition, so that a view that is up to date is not replaced. */
const viewComment = ({ doc, query }: View): string => `${doc} Shape ${digestOf(query)}.`;

/** Adds the second digest to the comment, after the view is created. */
const addRule = (schema: string, { name }: View): string => `
  do $do$ declare c record; begin
    select oid, obj_description(oid, 'pg_class') as comment into c from pg_class
      where relnamespace = to_regnamespace(${quoteLiteral(quoteIdent(schema))}) and relname = ${quoteLiteral(name)};
    execute format('comment on view %s is %L', c.oid::regclass, regexp_replace(c.comment, '\\.$', '/' || ${RULE} || '.'));
  end $do$;`;

const digestOf = (query: string): string => createHash('sha256').update(query).digest('hex').slice(0, 12);

/** A view that a DBA created from `schema --format sql` has no second digest. */
function isCurrent({ query }: View, { comment, rule }: PresentView): boolean {
  const [, text, made = rule] = SHAPE.exec(comment ?? '') ?? [];
  return text === digestOf(query) && made === rule;
}

export function viewDefinition(schema: string, view: View): string {
  const name = nameIn(schema, view.name);
  return [
    `create or replace view ${name} as ${view.query.trim()};`,
    `comment on view ${name} is ${quoteLiteral(viewComment(view))};`,
    ...Object.entries(view.columns).map(
      ([column, comment]) => `comment on column ${name}.${quoteIdent(column)} is ${quoteLiteral(comment)};`,
    ),
  ].join('\n');
}

const OTHER_COLUMNS = '42P16';

/** Errors about a view: other objects depend on it, it has other columns, is no view, or has another owner; a table lost a column. */
const FIXES: Readonly<Record<string, string>> = {
  '2BP01': 'drop what uses it, run again, and create that again',
  [OTHER_COLUMNS]: 'rename or drop it, and run again',
  '42809': 'rename or move it, and run again: the name is needed for a view',
  '42501': 'make this user its owner, or drop it',
  '42703': 'give the table its column back, and run again',
  '42883': 'give the column its type back, and run again',
  '42804': 'give the column its type back, and run again',
};

function faultOf(error: unknown, schema: string, { name }: View): ViewFault | undefined {
  const { code = '', message, detail } = error as { code?: string; message?: string; detail?: string };
  const fix = FIXES[code];
  if (fix === undefined) return undefined;
  const why = [message, detail].filter(Boolean).join(': ').replaceAll('\n', '; ');
  return { view: name, says: `view ${schema}.${name} could not be brought up to date: ${why}`, fix };
}
