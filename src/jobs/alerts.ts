import { CAUGHT_UP, isFirstSync } from '../cursor/cursors.ts';
import type { Database, Queryable } from '../cursor/database/index.ts';
import { instantOf, raw, sql } from '../cursor/database/sql.ts';
import { SINK_CHANGED } from '../cursor/ledger.ts';
import { type Instant, toIso } from '../model/instant.ts';
import type { Log } from '../model/log.ts';
import { describeInstant, describeRange, type Window } from '../model/window.ts';
import { type Incident, type IncidentKind, markSent, recordTroubles, type Trouble, takeUnsent } from './incidents.ts';
import { type ScheduledStreams, streamKey } from './schedule.ts';

export interface AlertDeps {
  state: Database;
  log: Log;
  scheduled: ScheduledStreams;
  sinks: readonly { name: string }[];
  /** Where alerts are posted; undefined: they are only logged. */
  webhook: string | undefined;
  /** Kinds that are only logged. */
  muted?: readonly IncidentKind[];
}

export type Alert = ReturnType<typeof alertOf>;

const ANSWER_WITHIN_MS = 10_000;

/** Sends an alert when trouble begins and another when it ends, each once, however many workers run. */
export async function watch({ state, log, scheduled, sinks, webhook, muted = [] }: AlertDeps): Promise<void> {
  const names = sinks.map((sink) => sink.name);
  await recordTroubles(state, await findTroubles(state, scheduled, names));
  for (const incident of await takeUnsent(state)) {
    const alert = alertOf(incident);
    const { source, stream, kind, text } = alert;
    const isSent = webhook !== undefined && !muted.includes(kind);
    const failure = isSent ? await post(webhook, { ...alert, text: forChat(text) }) : undefined;
    if (failure !== undefined) {
      // Recovery: the alert stays unsent; a worker tries again within a minute.
      log.error({ source, stream, kind, reason: failure }, `the alert could not be delivered: ${text}`);
      continue;
    }
    if (alert.event === 'opened') log.error({ source, stream, kind }, text);
    else log.warn({ source, stream, kind }, text);
    await markSent(state, incident);
  }
}

/** What a webhook gets. `text` is the whole of it for people, as Slack and others of its kind want it. */
function alertOf({ source, stream, kind, message, openedAt, closedAt }: Incident) {
  const place = stream === '*' ? source : `${source}/${stream}`;
  const event = closedAt === undefined ? ('opened' as const) : ('recovered' as const);
  const text = event === 'opened' ? `${place} ${kind}: ${message}` : `${place} recovered, no longer ${kind}`;
  return { event, kind, source, stream, since: toIso(openedAt), message, text };
}

/** Slack reads these three as markup: what a service wrote into a message must not call a whole channel. */
const forChat = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Returns what went wrong. The address stays out of it: it may hold a secret. */
async function post(url: string, alert: Alert): Promise<string | undefined> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'tributary' },
      body: JSON.stringify(alert),
      redirect: 'error',
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    await response.body?.cancel();
    return response.ok ? undefined : `the webhook answered ${response.status}`;
  } catch (error) {
    return `the webhook cannot be reached (${error instanceof Error ? error.name : 'unknown'})`;
  }
}

/** A window that could not be proven is read again after an hour; when that did not help either, somebody should know. */
const STAYS_AFTER_TRIES = 2;

/** Everything that is wrong now and that needs an alert: parked, failing, late, not proven, changed by others. */
export async function findTroubles(
  db: Queryable,
  scheduled: ScheduledStreams,
  sinks: readonly string[],
): Promise<Trouble[]> {
  return [
    ...(await findParked(db)),
    ...(await findFailing(db)),
    ...(await findLate(db, scheduled, sinks)),
    ...(await findUncertified(db)),
  ];
}

/**
 * Streams whose last run ended in a bug or an impossible config, and backfills that gave windows up, for a day. Such a stream may be
 * within its `maxLag`, or have none: nothing else would tell.
 */
async function findFailing(db: Queryable): Promise<Trouble[]> {
  const rows = await db.query<{ source: string; stream: string; message: string }>(sql`
    select distinct on (source, stream) * from (
      select s.source, s.stream, 'the last run failed: ' || coalesce(r.message, 'nobody knows why') as message
      from tributary.schedules s join lateral (
        select state, message from tributary.runs r where (r.source, r.stream) = (s.source, s.stream)
          and kind in ('sync', 're-sweep') and state in ('done', 'incomplete', 'refused', 'failed')
        order by started_at desc limit 1
      ) r on r.state = 'failed'
      union all
      select b.source, b.stream, format('backfill %s gave up windows: %s', b.id, max(w.message))
      from tributary.backfills b join tributary.backfill_windows w on w.backfill_id = b.id and w.state = 'failed'
      where b.state in ('queued', 'failed') and coalesce(b.finished_at, now()) > now() - interval '1 day'
      group by b.id
    ) failing order by source, stream, message desc`);
  return rows.map((row) => ({ ...row, kind: 'failing' }));
}

/** What stopped a stream may not be what keeps it from going on: where a later run failed for another reason, that comes first. */
async function findParked(db: Queryable): Promise<Trouble[]> {
  type Found = { source: string; stream: string; reason: string; next: string | null; later: string | null };
  const rows = await db.query<Found>(sql`
    select p.source, p.stream, p.reason, p.next_step as next, r.message as later from tributary.parked p
    left join lateral (
      select state, message from tributary.runs r
      where r.source = p.source and p.stream in (r.stream, '*') and r.finished_at > p.since and r.kind in ('sync', 're-sweep')
      order by r.started_at desc limit 1
    ) r on r.state <> 'refused' and r.message <> p.reason`);
  return rows.map(({ source, stream, reason, next, later }) => {
    // The words of a service may end with a full stop.
    const [why, now] = [reason, later].map((words) => words?.replace(/\.$/, ''));
    const message = now
      ? `stopped: the last try failed, because ${now}. Before that: ${why}`
      : `stopped, because ${why}${next ? `. Next: ${next}` : ''}`;
    return { source, stream, kind: 'parked', message };
  });
}

/**
 * The lag of a stream is that of its slowest sink. A first sync is far behind by nature: it is late where it has not moved for longer
 * than `maxLag`, counted from when the stream was configured.
 */
async function findLate(db: Queryable, scheduled: ScheduledStreams, sinks: readonly string[]): Promise<Trouble[]> {
  type Found = { source: string; stream: string; through: Instant | null; lag: number; still: number };
  const rows = await db.query<Found & { caughtUp: boolean; why: string | null }>(sql`
    select s.source, s.stream, ${instantOf('c.through')} as through, coalesce(c.caught_up, false) as "caughtUp",
      ${raw(msSince('coalesce(c.through, s.created_at)'))} as lag, ${raw(msSince('greatest(s.created_at, c.read_at)'))} as still, r.message as why
    from tributary.schedules s left join lateral (
      select case when count(c.complete_through) = ${sinks.length} then min(c.complete_through) end as through,
        count(*) = ${sinks.length} and bool_and(${raw(CAUGHT_UP)}) as caught_up, max(c.updated_at) as read_at
      from tributary.cursors c where (c.source, c.stream) = (s.source, s.stream) and c.sink = any(${sinks})
    ) c on true
    left join lateral (
      select message from tributary.runs r where (r.source, r.stream) = (s.source, s.stream) and finished_at is not null
      order by started_at desc limit 1
    ) r on true`);
  return rows.flatMap(({ source, stream, through, caughtUp, lag, still, why }) => {
    const maxLag = scheduled.get(streamKey(source, stream))?.maxLagMs;
    if (maxLag === undefined || lag <= maxLag) return [];
    const isFirst = isFirstSync({ caughtUp, lagMs: lag }, maxLag);
    if (isFirst && still <= maxLag) return [];
    const where =
      through === null ? 'nothing is proven complete yet' : `complete only through ${describeInstant(through)}`;
    const what = isFirst ? `the first sync has not moved for ${minutes(still)}, ` : `${minutes(lag)} behind, `;
    const message = `${what}more than maxLag (${minutes(maxLag)}): ${where}${why ? `. The last run: ${why}` : ''}`;
    return [{ source, stream, kind: 'late' as const, message }];
  });
}

const msSince = (moment: string): string => `extract(epoch from clock_timestamp() - ${moment})::float8 * 1000`;

/** Windows that no reading has proven for a while; and, at once, those that a sink held and does not hold any more. */
async function findUncertified(db: Queryable): Promise<Trouble[]> {
  type Found = Window & { source: string; stream: string; note: string | null; more: number; changed: boolean };
  const rows = await db.query<Found>(sql`
    select distinct on (source, stream, changed) source, stream, note, changed,
      count(*) over (partition by source, stream, changed) - 1 as more,
      ${instantOf('start_at')} as start, ${instantOf('end_at')} as "end"
    from (select *, starts_with(note, ${SINK_CHANGED}) is true as changed from tributary.windows where state = 'uncertified') w
    where tries >= ${STAYS_AFTER_TRIES} or changed
    order by source, stream, changed, start_at`);
  return rows.map(({ source, stream, note, more, changed, ...window }) => {
    const where = `${describeRange(window)}${more > 0 ? ` and ${more} more` : ''}`;
    if (changed)
      return { source, stream, kind: 'sink_changed', message: `${where}: ${note?.slice(SINK_CHANGED.length)}` };
    return {
      source,
      stream,
      kind: 'uncertified',
      message: `${where} could not be proven complete${note ? `: ${note}` : ''}`,
    };
  });
}

const minutes = (ms: number): string => {
  const count = Math.round(ms / 60_000);
  return count < 120 ? `${count} min` : `${Math.round(count / 60)} h`;
};
