import { hasShownAny } from '../../cursor/cursors.ts';
import type { Queryable } from '../../cursor/database/index.ts';
import { sql } from '../../cursor/database/sql.ts';
import { Fault } from '../../model/errors.ts';
import { describeInstant } from '../../model/window.ts';
import { abilityOf } from '../../sinks/sink.ts';
import type { LinksJob, SyncDeps } from '../job.ts';
import { type StreamReport, withRun } from '../run.ts';

/** Nothing is written before the listing is complete. Sinks are updated one after the other, each atomically. */
export const syncLinks = (deps: SyncDeps, job: LinksJob): Promise<StreamReport> =>
  withRun(deps, job, 'sync', async (run) => {
    const { source, stream } = job;
    const writers = deps.sinks.map((sink) => ({ sink, replace: abilityOf(sink, 'replaceLinks') }));
    const startedAt = Math.floor(run.now());
    const report = (rows: number): void => {
      run.tally.read = rows;
      deps.onProgress({ source, stream, rows, requests: run.requests(), through: undefined, runId: run.id });
    };
    const hadLinks = await hasShownAny(deps.state, source);
    const listing = await job.list({ hadLinks, signal: deps.signal, onSeen: report });
    report(listing.rows.length);
    for (const row of listing.rows) {
      for (const column of row.typeMismatches)
        run.tally.typeMismatches[column] = (run.tally.typeMismatches[column] ?? 0) + 1;
    }
    const snapshot = { source, runId: run.id, startedAt, keepHistory: job.keepHistory, ...listing };
    for (const [i, { sink, replace }] of writers.entries()) {
      const receipt = await replace({ ...snapshot, epoch: run.lease.epoch }).catch((error: unknown) => {
        throw error instanceof Fault ? error.at({ sink: sink.name }) : error;
      });
      // All sinks hold the same links, so the tally only has the counts of the first one.
      if (i === 0) Object.assign(run.tally, receipt);
      report(listing.rows.length);
    }
    if (listing.isProven) return { state: 'done', unproven: [] };
    const note = `as of ${describeInstant(listing.at)}, not proven: ${listing.note}; it is tried again at the next poll`;
    return { state: 'incomplete', unproven: [], note };
  });

/** The jobs that were not run within their interval: a sync of all streams may run every minute, and a listing takes many requests. */
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
