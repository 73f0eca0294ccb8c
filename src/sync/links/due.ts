import type { Queryable } from '../../cursor/database/index.ts';
import { sql } from '../../cursor/database/sql.ts';
import type { LinksJob } from '../job.ts';

/** Those that were not listed within their `every`: a sync of everything may run every minute, and a listing takes many requests. */
export async function dueListings(state: Queryable, jobs: readonly LinksJob[]): Promise<LinksJob[]> {
  const due: LinksJob[] = [];
  for (const job of jobs) {
    const recent = await state.query(sql`
      select from tributary.cursors where source = ${job.source} and stream = 'links'
        and complete_through > now() - make_interval(secs => ${job.everyMs}::float8 / 1000) limit 1`);
    if (recent.length === 0) due.push(job);
  }
  return due;
}
