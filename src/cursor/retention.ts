import type { Queryable } from './database.ts';

/** So many at a time: the first time after years is no transaction of an hour. */
const AT_ONCE = 10_000;

/**
 * Removes what is only of interest for a while: runs that ended, incidents that are over, backfills that are through. A run that
 * wrote rows goes too; `_run_id` of those rows then names a run that nobody can look up. The audit trail stays.
 */
export async function removeOldHistory(db: Queryable, keepMs: number): Promise<void> {
  const old = (column: string): string => `${column} < now() - make_interval(secs => $1 / 1000.0)`;
  await db.query({
    text: `
      with runs as (
        delete from tributary.runs where id in (
          select id from tributary.runs where ${old('started_at')} and state <> 'running'
          order by started_at limit ${AT_ONCE})
      ), incidents as (
        delete from tributary.incidents where ${old('closed_at')}
      )
      delete from tributary.backfills where ${old('finished_at')}`,
    values: [keepMs],
  });
}
