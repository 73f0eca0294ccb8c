import type { Database, Queryable } from '../cursor/database/index.ts';
import { sql } from '../cursor/database/sql.ts';
import { toIso } from '../model/instant.ts';
import type { Log } from '../model/log.ts';
import { findUnmet } from '../sync/needs.ts';
import { claimUnsent, type Incident, type IncidentKind, markSent, recordTroubles, type Trouble } from './incidents.ts';
import type { ScheduledStreams } from './schedule.ts';

export interface AlertDeps {
  state: Database;
  log: Log;
  scheduled: ScheduledStreams;
  sinks: readonly { name: string }[];
  /** Where alerts are posted; undefined: they are only logged. */
  webhook: string | undefined;
  muted?: readonly IncidentKind[];
}

export type Alert = ReturnType<typeof alertOf>;

const ANSWER_WITHIN_MS = 10_000;

/** Sends one alert when an incident opens and one when it closes, regardless of how many workers run. */
export async function sendAlerts({ state, log, scheduled, sinks, webhook, muted = [] }: AlertDeps): Promise<void> {
  const names = sinks.map((sink) => sink.name);
  await recordTroubles(state, await findTroubles(state, scheduled, names));
  for (const incident of await claimUnsent(state)) {
    const alert = alertOf(incident);
    const { source, stream, kind, text } = alert;
    const isSent = webhook !== undefined && !muted.includes(kind);
    const failure = isSent ? await post(webhook, { ...alert, text: forChat(text) }) : undefined;
    if (failure !== undefined) {
      // Recovery: the alert stays unsent; a worker retries within a minute.
      log.error({ source, stream, kind, reason: failure }, `the alert could not be delivered: ${text}`);
      continue;
    }
    if (alert.event === 'opened') log.error({ source, stream, kind }, text);
    else log.warn({ source, stream, kind }, text);
    await markSent(state, incident);
  }
}

/** The body posted to the webhook. `text` is the human-readable summary that Slack and similar services display. */
function alertOf({ source, stream, kind, message, openedAt, closedAt }: Incident) {
  const place = stream === '*' ? source : `${source}/${stream}`;
  const event = closedAt === undefined ? ('opened' as const) : ('recovered' as const);
  const text = event === 'opened' ? `${place} ${kind}: ${message}` : `${place} recovered, no longer ${kind}`;
  return { event, kind, source, stream, since: toIso(openedAt), message, text };
}

/** Slack parses these three characters as markup: text from the service must not be able to notify a whole channel. */
const forChat = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Returns the reason for a failure, without the URL: it may contain a secret. */
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

export async function findTroubles(
  db: Queryable,
  scheduled: ScheduledStreams,
  sinks: readonly string[],
): Promise<Trouble[]> {
  const maxLagMs = new Map([...scheduled].map(([key, stream]) => [key, stream.maxLagMs]));
  return [...(await findParked(db)), ...(await findFailing(db)), ...(await findUnmet(db, maxLagMs, sinks))];
}

/** Syncs that failed because of a bug or the config, and for a day backfills with failed windows: `late` may not cover them. */
async function findFailing(db: Queryable): Promise<Trouble[]> {
  const rows = await db.query<{ source: string; stream: string; message: string }>(sql`
    select distinct on (source, stream) * from (
      select s.source, s.stream, 'the last run failed: ' || coalesce(r.message, 'it recorded no reason') as message
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

/** The reason for parking may be outdated: if a later run failed for another reason, the message leads with that one. */
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
    // Messages from the service may end with a full stop.
    const [why, now] = [reason, later].map((text) => text?.replace(/\.$/, ''));
    const message = now
      ? `stopped: the last try failed, because ${now}. Before that: ${why}`
      : `stopped, because ${why}${next ? `. Next: ${next}` : ''}`;
    return { source, stream, kind: 'parked', message };
  });
}
