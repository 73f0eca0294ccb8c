import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Queryable } from '../cursor/database/index.ts';
import { sql } from '../cursor/database/sql.ts';
import { Fault } from '../model/errors.ts';
import { type Access, digestOf, type Visitor } from './access.ts';
import { HttpError } from './answers.ts';
import type { ControlDeps, Readiness } from './dependencies.ts';
import { type Overview, readOverview } from './routes/overview.ts';
import { readBackfillsUnderWay } from './routes/under-way.ts';

/**
 * `GET /api/events`, server-sent events. Each has an id; a browser that reconnects gets the events that it missed, or `reset`.
 * A comment is sent every 15 seconds, so that a dead connection is detected.
 */
export type LiveEvent =
  /** Sent first, and whenever something in it changed. */
  | { event: 'overview'; data: Overview }
  /** Sent first, and whenever a dependency went down or came back. */
  | { event: 'readiness'; data: Readiness }
  /** The topics that changed: reload the parts of the page that show them. */
  | { event: 'changed'; data: { topics: Topic[] } }
  /** Too many events were missed: reload everything on the page. */
  | { event: 'reset'; data: Record<string, never> };

export interface LiveTimings {
  pollMs: number;
  heartbeatMs: number;
}

const LIVE_TIMINGS: LiveTimings = { pollMs: 2000, heartbeatMs: 15_000 };

/** Polling continues this long after the last subscriber left, so that a browser that reconnects gets the events that it missed. */
const GRACE_MS = 60_000;

/** Enough for a browser that was away for some minutes; later it gets `reset`. Few, because all are sent in one write. */
const KEPT_EVENTS = 200;
const KEPT_CHARACTERS = 400_000;

/** Publishes changes to all subscribers. One poll of the state serves all of them; without subscribers there is none. */
export function createLive(deps: ControlDeps, { pollMs, heartbeatMs }: LiveTimings = LIVE_TIMINGS) {
  // Numbers start over with every process, so ids include an id of the process.
  const processId = randomBytes(4).toString('hex');
  const subscribers = new Set<(text: string) => void>();
  const recent: Array<{ number: number; text: string }> = [];
  let count = 0;
  let keptCharacters = 0;
  let polling: AbortController | undefined;
  let stopTimer: NodeJS.Timeout | undefined;
  let last: Partial<Record<'overview' | 'readiness', { fingerprint: string; event: LiveEvent }>> = {};
  let fingerprints: Fingerprints | undefined;

  const publish = (event: LiveEvent): void => {
    count += 1;
    const text = textOf(`${processId}.${count}`, event);
    recent.push({ number: count, text });
    keptCharacters += text.length;
    while (recent.length > KEPT_EVENTS || keptCharacters > KEPT_CHARACTERS)
      keptCharacters -= recent.shift()?.text.length ?? 0;
    for (const send of subscribers) send(text);
  };

  const publishIfChanged = (event: Exclude<LiveEvent, { event: 'changed' | 'reset' }>, fingerprint: string): void => {
    const hasChanged = last[event.event]?.fingerprint !== fingerprint;
    last = { ...last, [event.event]: { fingerprint, event } };
    if (hasChanged) publish(event);
  };

  const poll = async (): Promise<void> => {
    const readiness = await deps.dependencies.readiness();
    publishIfChanged({ event: 'readiness', data: readiness }, readinessFingerprint(readiness));
    if (readiness.parts.some(({ part, ok }) => part === 'state' && !ok)) return;
    const overview = await deps.dependencies.watch(readOverview(deps), ['state']);
    publishIfChanged({ event: 'overview', data: overview }, overviewFingerprint(overview));
    const now = await deps.dependencies.watch(readFingerprints(deps.state), ['state']);
    const topics = fingerprints ? changedTopics(fingerprints, now) : [];
    fingerprints = now;
    if (topics.length > 0) publish({ event: 'changed', data: { topics } });
  };

  const keepPolling = async (signal: AbortSignal): Promise<void> => {
    do {
      try {
        await poll();
      } catch (error) {
        // Recovery: the state has just gone down. The next poll reports it, unless the state is back.
        const reason = error instanceof Error ? error.message : String(error);
        if (error instanceof Fault) deps.log.debug({ reason }, 'live updates are waiting for the state database');
        else deps.log.error({ err: error }, 'live updates failed because of a bug');
      }
    } while (await sleep(pollMs, true, { signal }).catch(() => false));
  };

  const heartbeat = setInterval(() => {
    for (const send of subscribers) send(': still here\n\n');
  }, heartbeatMs).unref();

  return {
    /** Calls `send` with text for the event stream until the returned function is called. `lastId`: the last event the browser received. */
    subscribe(send: (text: string) => void, lastId: string | undefined) {
      send('retry: 2000\n\n');
      const missed = missedSince(lastId);
      if (missed) for (const { text } of missed) send(text);
      else {
        const first = [last.overview, last.readiness].flatMap((change) => (change && polling ? [change.event] : []));
        const id = `${processId}.${count}`;
        if (lastId !== undefined) send(textOf(id, { event: 'reset', data: {} }));
        for (const event of first) send(textOf(id, event));
      }
      subscribers.add(send);
      clearTimeout(stopTimer);
      if (!polling) {
        // Nothing was polled without subscribers, so what is known is outdated.
        last = {};
        fingerprints = undefined;
        polling = new AbortController();
        void keepPolling(polling.signal);
      }
      return () => {
        subscribers.delete(send);
        if (subscribers.size > 0) return;
        stopTimer = setTimeout(stopPolling, GRACE_MS).unref();
      };
    },
    /** Publishes a change that polling the state cannot see. */
    changed: (topic: Topic) => publish({ event: 'changed', data: { topics: [topic] } }),
    close() {
      clearInterval(heartbeat);
      clearTimeout(stopTimer);
      subscribers.clear();
      stopPolling();
    },
  };

  function stopPolling(): void {
    polling?.abort();
    polling = undefined;
  }

  /** Undefined if the missed events are no longer kept, or if the browser is new. */
  function missedSince(lastId: string | undefined) {
    const [process, number] = lastId?.split('.') ?? [];
    if (process !== processId || !polling || !/^\d+$/.test(number ?? '')) return undefined;
    const from = Number(number);
    if (from < (recent[0]?.number ?? count + 1) - 1) return undefined;
    return recent.filter((one) => one.number > from);
  }
}

const textOf = (id: string, { event, data }: LiveEvent): string =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** Without messages: their wording alone is no reason to publish. */
const readinessFingerprint = ({ parts }: Readiness): string => parts.map(({ name, ok }) => `${name} ${ok}`).join();

export type Topic = 'coverage' | 'runs' | 'log' | 'backfills' | 'quarantine' | 'schema' | 'budget' | 'verifications';

/** For each topic, a short text that changes when the topic does. */
type Fingerprints = Readonly<Record<Exclude<Topic, 'verifications'>, string>>;

/** Uses only indexes and small tables, because it runs every few seconds, however long the history is. */
async function readFingerprints(state: Queryable): Promise<Fingerprints> {
  const [row] = await state.query<Record<keyof Fingerprints, string | null>>(sql`
    select
      (select string_agg(concat_ws(' ', source, stream, sink, complete_through, updated_at), ',') from tributary.cursors) as coverage,
      (select string_agg(concat_ws(' ', r.id, r.state), ',') from (
        select distinct source, stream from tributary.schedules union select source, stream from tributary.cursors
      ) k cross join lateral (
        select id, state from tributary.runs r where (r.source, r.stream) = (k.source, k.stream)
        order by started_at desc limit 3
      ) r) as runs,
      pg_sequence_last_value('tributary.run_log_id_seq')::text as log,
      (select concat_ws(' ', count(*), max(id), max(last_at)) from tributary.quarantine) as quarantine,
      (select max(id)::text from tributary.columns) as schema,
      (select concat_ws(' ', max(minute), sum(too_many)) from tributary.budget_use
        where minute > now() - interval '1 hour') as budget,
      (select string_agg(concat_ws(' ', id, state), ',') from tributary.backfills) as backfills`);
  const backfills = `${row?.backfills} ${JSON.stringify(await readBackfillsUnderWay(state))}`;
  const texts = Object.entries({ ...row, backfills });
  return Object.fromEntries(texts.map(([topic, text]) => [topic, digest(text)])) as Fingerprints;
}

const changedTopics = (before: Fingerprints, after: Fingerprints): Topic[] =>
  (Object.keys(after) as Array<keyof Fingerprints>).filter((topic) => before[topic] !== after[topic]);

/** Changes if anything but the ages does. */
const overviewFingerprint = (overview: Overview): string =>
  digest(JSON.stringify({ ...overview, now: '' }, (key, value) => (key === 'lagSeconds' ? 0 : value)));

const digest = (text: string | null | undefined): string => digestOf(text ?? '').slice(0, 16);

const MOST_SUBSCRIBERS = 200;
const RETRY_SECONDS = 30;
/** More than a browser receives at once when it reconnects after minutes. */
const MOST_WAITING_BYTES = 1_000_000;
/** The interval of checks for clients whose session or token expired, or was ended on another server. */
const CHECK_MS = 2000;

/** The last header keeps proxies such as nginx from buffering events. */
const HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };

/** Server-sent events for a limited number of clients: each costs a connection and a copy of every event. */
export function createEvents(
  live: Pick<ReturnType<typeof createLive>, 'subscribe'>,
  access: Pick<Access, 'holds' | 'onChange'>,
) {
  const subscribers = new Map<ServerResponse, Visitor>();
  const disconnectExpired = (): void => {
    for (const [raw, visitor] of subscribers) if (!access.holds(visitor)) raw.end();
  };
  access.onChange(disconnectExpired);
  const checking = setInterval(disconnectExpired, CHECK_MS).unref();
  return {
    /** Throws if there are too many clients. Called before the response begins, so that it can contain the reason. */
    checkRoom(): void {
      if (subscribers.size < MOST_SUBSCRIBERS) return;
      throw new HttpError(503, `${MOST_SUBSCRIBERS} pages are already connected`, {
        next: 'close some of them; the rest of the API is not affected',
        retryAfter: RETRY_SECONDS,
      });
    },
    serve(raw: ServerResponse, visitor: Visitor, lastId: string | undefined, headers: Record<string, string>): void {
      subscribers.set(raw, visitor);
      raw.writeHead(200, { ...headers, ...HEADERS });
      // A sleeping browser does not read: its connection is closed, and it reconnects when it wakes up.
      const send = (text: string) => (raw.writableLength > MOST_WAITING_BYTES ? raw.destroy() : raw.write(text));
      const leave = live.subscribe(send, lastId);
      raw.once('close', () => {
        subscribers.delete(raw);
        leave();
      });
    },
    close: () => clearInterval(checking),
  };
}
