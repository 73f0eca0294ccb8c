import type { Queryable } from '../cursor/database.ts';
import type { Trouble } from '../cursor/incidents.ts';
import { instantOf } from '../cursor/sql.ts';
import { type Instant, toIso } from '../model/instant.ts';
import { describeRange, type Window } from '../model/window.ts';
import { type Plans, planKey } from './plan.ts';

/** A window that could not be proven is read again after an hour; when that did not help either, somebody should know. */
const STAYS_AFTER_TRIES = 2;

/** Everything that is wrong now and that somebody should be told of: parked, late, not proven. */
export async function findTroubles(db: Queryable, plans: Plans, sinks: readonly string[]): Promise<Trouble[]> {
  return [...(await findParked(db)), ...(await findLate(db, plans, sinks)), ...(await findUncertified(db))];
}

async function findParked(db: Queryable): Promise<Trouble[]> {
  const rows = await db.query<{ source: string; stream: string; reason: string; next: string | null }>({
    text: 'select source, stream, reason, next_step as next from tributary.parked',
  });
  return rows.map(({ source, stream, reason, next }) => ({
    source,
    stream,
    kind: 'parked',
    message: `stopped, because ${reason}${next ? `. Next: ${next}` : ''}`,
  }));
}

/** Behind by the sink that is furthest behind; a stream with nothing proven yet is as old as its place in the config. */
async function findLate(db: Queryable, plans: Plans, sinks: readonly string[]): Promise<Trouble[]> {
  const rows = await db.query<{ source: string; stream: string; through: Instant | null; lag: number }>({
    text: `
      select s.source, s.stream, ${instantOf('c.through')} as through,
        extract(epoch from clock_timestamp() - coalesce(c.through, s.created_at))::float8 * 1000 as lag
      from tributary.schedules s left join lateral (
        select case when count(c.complete_through) = $2 then min(c.complete_through) end as through
        from tributary.cursors c where (c.source, c.stream) = (s.source, s.stream) and c.sink = any($1)
      ) c on true`,
    values: [sinks, sinks.length],
  });
  return rows.flatMap(({ source, stream, through, lag }) => {
    const maxLag = plans.get(planKey(source, stream))?.maxLagMs;
    if (maxLag === undefined || lag <= maxLag) return [];
    const where = through === null ? 'nothing is proven complete yet' : `complete only through ${toIso(through)}`;
    const message = `${minutes(lag)} behind, more than maxLag (${minutes(maxLag)}): ${where}`;
    return [{ source, stream, kind: 'late' as const, message }];
  });
}

async function findUncertified(db: Queryable): Promise<Trouble[]> {
  type Found = Window & { source: string; stream: string; note: string | null; more: number };
  const rows = await db.query<Found>({
    text: `
      select distinct on (source, stream) source, stream, note, count(*) over (partition by source, stream) - 1 as more,
        ${instantOf('start_at')} as start, ${instantOf('end_at')} as "end"
      from tributary.windows where state = 'uncertified' and tries >= $1
      order by source, stream, start_at`,
    values: [STAYS_AFTER_TRIES],
  });
  return rows.map(({ source, stream, note, more, ...window }) => ({
    source,
    stream,
    kind: 'uncertified',
    message: `${describeRange(window)}${more > 0 ? ` and ${more} more` : ''} could not be proven complete${note ? `: ${note}` : ''}`,
  }));
}

const minutes = (ms: number): string => {
  const count = Math.round(ms / 60_000);
  return count < 120 ? `${count} min` : `${Math.round(count / 60)} h`;
};
