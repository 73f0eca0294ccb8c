import type { Database } from '../cursor/database.ts';
import { type Incident, markTold, recordTroubles, takeUntold } from '../cursor/incidents.ts';
import { toIso } from '../model/instant.ts';
import type { Log } from '../model/log.ts';
import type { Plans } from './plan.ts';
import { findTroubles } from './troubles.ts';

export interface AlertDeps {
  state: Database;
  log: Log;
  plans: Plans;
  sinks: readonly { name: string }[];
  /** Where alerts are posted; undefined: they are only logged. */
  webhook: string | undefined;
}

/** What a webhook gets. `text` is the whole of it for people, as chat services want it. */
export interface Alert {
  event: 'opened' | 'recovered';
  kind: Incident['kind'];
  source: string;
  stream: string;
  since: string;
  message: string;
  text: string;
}

const ANSWER_WITHIN_MS = 10_000;

/** Looks for trouble and tells of it: once when it begins and once when it is over, however many workers look. */
export async function watch({ state, log, plans, sinks, webhook }: AlertDeps): Promise<void> {
  const names = sinks.map((sink) => sink.name);
  await recordTroubles(state, await findTroubles(state, plans, names));
  for (const incident of await takeUntold(state)) {
    const alert = alertOf(incident);
    const { source, stream, kind, text } = alert;
    const failure = webhook === undefined ? undefined : await post(webhook, alert);
    if (failure !== undefined) {
      // Recovery: it stays untold, and is taken up again in a minute by whoever looks then.
      log.error({ source, stream, kind, reason: failure }, `the alert could not be delivered: ${text}`);
      continue;
    }
    if (alert.event === 'opened') log.error({ source, stream, kind }, text);
    else log.warn({ source, stream, kind }, text);
    await markTold(state, incident);
  }
}

function alertOf({ source, stream, kind, message, openedAt, closedAt }: Incident): Alert {
  const place = stream === '*' ? source : `${source}/${stream}`;
  const event = closedAt === undefined ? 'opened' : 'recovered';
  const text = event === 'opened' ? `${place} ${kind}: ${message}` : `${place} recovered, no longer ${kind}`;
  return { event, kind, source, stream, since: toIso(openedAt), message, text };
}

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
