import type { EvolvedColumn, SchemaChange } from '../model/evolution.ts';
import type { StreamName } from '../model/streams.ts';
import type { Database, Queryable } from './database/index.ts';
import { sql } from './database/sql.ts';

/** The columns added for undeclared fields. The table is a log of all changes; the latest entry of a path counts. */
export const readEvolved = (db: Queryable, stream: StreamName): Promise<EvolvedColumn[]> =>
  db.query<EvolvedColumn>({ text: selectEvolved('$1'), values: [stream] });

/** Finds and records the changes under a lock, so that two processes that see the same new field at once add one column. */
export async function recordSchemaChanges(
  state: Database,
  { stream, source, runId }: { stream: StreamName; source: string; runId: string },
  find: (known: readonly EvolvedColumn[]) => readonly SchemaChange[],
): Promise<{ changes: readonly SchemaChange[]; evolved: EvolvedColumn[] }> {
  return state.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(hashtext(${`tributary columns of ${stream}`}))`);
    const changes = find(await readEvolved(tx, stream));
    for (const { path, name, kind, was } of changes)
      await tx.query(sql`
        insert into tributary.columns (stream, path, name, kind, previous_kind, source, run_id)
        values (${stream}, ${path}, ${name}, ${kind}, ${was}, ${source}, ${runId})`);
    return { changes, evolved: await readEvolved(tx, stream) };
  });
}

/** In the order in which the fields were first seen, so that the order of columns never changes. */
export const selectEvolved = (stream: string): string => `
  select path, (array_agg(name order by id desc))[1] as name, (array_agg(kind order by id desc))[1] as kind
  from tributary.columns where stream = ${stream} group by path order by min(id)`;
