import { CAUGHT_UP, isFirstSync } from '../cursor/cursors.ts';
import type { Queryable } from '../cursor/database/index.ts';
import { instantOf, raw, sql } from '../cursor/database/sql.ts';
import { SINK_CHANGED } from '../cursor/ledger.ts';
import type { Instant } from '../model/instant.ts';
import type { SyncName } from '../model/streams.ts';
import { describeInstant, describeRange, type Window } from '../model/window.ts';
import type { StreamStatus } from './status.ts';

export interface Need {
  source: string;
  stream: SyncName;
  kind: 'parked' | 'late' | 'uncertified' | 'failed' | 'sink_changed' | 'unsynced';
  message: string;
}

/** `message` is the full text for alerts, `brief` the short one for `status --check`. */
export interface Unmet extends Need {
  kind: 'late' | 'uncertified' | 'sink_changed';
  brief: string;
}

/** Configured streams that violate their guarantees: late, not certified, or changed by others in the sink. */
export async function findUnmet(
  db: Queryable,
  maxLagMs: ReadonlyMap<string, number | undefined>,
  sinks: readonly string[],
): Promise<Unmet[]> {
  const found = [...(await findLate(db, maxLagMs, sinks)), ...(await findUncertified(db, sinks))];
  return found.filter(({ source, stream }) => maxLagMs.has(`${source}/${stream}`));
}

/** The slowest sink counts. A first sync is necessarily behind, so it only is late if it has made no progress for longer than `maxLag`. */
async function findLate(
  db: Queryable,
  maxLagMs: ReadonlyMap<string, number | undefined>,
  sinks: readonly string[],
): Promise<Unmet[]> {
  type Found = Pick<Need, 'source' | 'stream'> & { through: Instant | null; lag: number | null; still: number };
  // Without a worker, there are no schedules, so the streams are taken from the cursors.
  const rows = await db.query<Found & { caughtUp: boolean; why: string | null }>(sql`
    select t.source, t.stream, ${instantOf('c.through')} as through, coalesce(c.caught_up, false) as "caughtUp",
      ${raw(msSince('coalesce(c.through, s.created_at)'))} as lag, ${raw(msSince('greatest(s.created_at, c.read_at)'))} as still, r.message as why
    from (
      select source, stream from tributary.schedules union
      select source, stream from tributary.cursors where not exists (select from tributary.schedules)
    ) t left join tributary.schedules s using (source, stream) left join lateral (
      select case when count(c.complete_through) = ${sinks.length} then min(c.complete_through) end as through,
        count(*) = ${sinks.length} and bool_and(${raw(CAUGHT_UP)}) as caught_up, max(c.updated_at) as read_at
      from tributary.cursors c where (c.source, c.stream) = (t.source, t.stream) and c.sink = any(${sinks})
    ) c on true
    left join lateral (
      select message from tributary.runs r where (r.source, r.stream) = (t.source, t.stream) and finished_at is not null
      order by started_at desc limit 1
    ) r on true`);
  return rows.flatMap(({ source, stream, through, caughtUp, lag, still, why }) => {
    const maxLag = maxLagMs.get(`${source}/${stream}`);
    if (maxLag === undefined || lag === null || lag <= maxLag) return [];
    const isFirst = isFirstSync({ caughtUp, lagMs: lag }, maxLag);
    if (isFirst && still <= maxLag) return [];
    const where =
      through === null ? 'nothing is proven complete yet' : `complete only through ${describeInstant(through)}`;
    const what = isFirst ? `the first sync has not moved for ${minutes(still)}, ` : `${minutes(lag)} behind, `;
    const message = `${what}more than maxLag (${minutes(maxLag)}): ${where}${why ? `. The last run: ${why}` : ''}`;
    const brief = `${Math.round(lag / 60_000)} min behind, more than maxLag (${Math.round(maxLag / 60_000)} min)`;
    return [{ source, stream, kind: 'late', message, brief }];
  });
}

const msSince = (moment: string): string => `extract(epoch from clock_timestamp() - ${moment})::float8 * 1000`;

const minutes = (ms: number): string => {
  const count = Math.round(ms / 60_000);
  return count < 120 ? `${count} min` : `${Math.round(count / 60)} h`;
};

/** A window that two runs, an hour apart, could not prove is reported. */
const REPORTED_AFTER_TRIES = 2;

/** Windows that several runs could not prove; and, immediately, those whose rows a sink has lost. */
async function findUncertified(db: Queryable, sinks: readonly string[]): Promise<Unmet[]> {
  type Found = Window & Pick<Need, 'source' | 'stream'> & { note: string | null; all: number; changed: boolean };
  const rows = await db.query<Found>(sql`
    select distinct on (source, stream, changed) source, stream, note, changed,
      count(*) over (partition by source, stream, changed) as all,
      ${instantOf('start_at')} as start, ${instantOf('end_at')} as "end"
    from (select *, starts_with(note, ${SINK_CHANGED}) is true as changed from tributary.windows where state = 'uncertified') w
    where (tries >= ${REPORTED_AFTER_TRIES} or changed) and sink = any(${sinks})
    order by source, stream, changed, start_at`);
  return rows.map(({ source, stream, note, all, changed, ...window }) => {
    const where = `${describeRange(window)}${all > 1 ? ` and ${all - 1} more` : ''}`;
    const brief = changed ? `${note?.slice(SINK_CHANGED.length)}` : `windows that two runs could not prove: ${all}`;
    const why = changed ? `: ${brief}` : ` could not be proven complete${note ? `: ${note}` : ''}`;
    return { source, stream, kind: changed ? 'sink_changed' : 'uncertified', message: `${where}${why}`, brief };
  });
}

/** Problems of configured streams that need action; the same problem in several sinks is listed once. */
export function needsOf(
  streams: readonly StreamStatus[],
  unmet: readonly Unmet[],
  maxLagMs: ReadonlyMap<string, unknown>,
): Need[] {
  const refused = streams.flatMap(
    ({ source, stream, parked, lastRun, failing }): Array<Need | false> => [
      parked !== null && { source, stream, kind: 'parked', message: parked.reason },
      (lastRun?.state === 'failed' || failing) && {
        ...{ source, stream, kind: 'failed', message: lastRun?.message ?? 'the last run failed' },
      },
    ],
  );
  const needs = [...refused, ...unmet.map(({ brief, ...need }) => ({ ...need, message: brief }))];
  const known = needs.filter((need) => need !== false).filter((need) => maxLagMs.has(`${need.source}/${need.stream}`));
  return [...new Map(known.map((need) => [JSON.stringify([need.source, need.stream, need.kind]), need])).values()];
}

/** Streams (`source/stream`) whose first sync into a sink has not started or not ended. */
export function unfilledOf(
  streams: readonly StreamStatus[],
  wanted: readonly string[],
  sinks: readonly string[],
): Need[] {
  return wanted.flatMap((key) =>
    sinks.flatMap((sink): Need[] => {
      const [source = '', stream] = key.split('/') as [string, SyncName];
      const status = streams.find((one) => one.source === source && one.stream === stream && one.sink === sink);
      if (status && !status.firstSync) return [];
      const what = status ? `the first sync into ${sink} has not ended` : `never synced into ${sink}`;
      return [{ source, stream, kind: 'unsynced', message: `${what}; next: tributary sync` }];
    }),
  );
}
