import { setTimeout as sleep } from 'node:timers/promises';
import type { Queryable } from '../../cursor/database/index.ts';
import { sql } from '../../cursor/database/sql.ts';
import { RUN_STATES } from '../../cursor/runs.ts';
import { syncNow } from '../../jobs/backfills.ts';
import { Cancelled } from '../../model/errors.ts';
import type { SyncName } from '../../model/streams.ts';
import { anyStream, HttpError, listOf, named, shortText, warnings, z } from '../answers.ts';
import { type ControlDeps, chooseStreams, targetOf, warningsOf } from '../dependencies.ts';
import { type Route, route } from '../route.ts';

/** Proxies do not wait longer than this; clients can repeat the request. */
const LONGEST_WAIT_SECONDS = 60;
const LOOK_EVERY_MS = 500;

const wait = z.int().min(0).max(LONGEST_WAIT_SECONDS).default(0).describe('seconds to wait for the runs to end');

const SyncRequest = named('SyncRequest', {
  source: shortText.optional().describe('default: all sources'),
  streams: z.array(anyStream).max(4).optional().describe('default: all streams of events'),
  wait,
});

const SyncStarted = named('SyncStarted', {
  id: z.string().describe('for GET /api/sync/{id}'),
  done: z.boolean().describe('every run has ended'),
  ok: z.boolean().nullable().describe('every run has succeeded; null until that is known'),
  streams: listOf({
    source: z.string(),
    stream: anyStream,
    runId: z.string().nullable().describe('null: the worker has not started it yet'),
    state: z.nullable(z.enum(RUN_STATES)),
    message: z.string().nullable().describe('what stopped the run, or what is not certified and why'),
  }),
  warnings,
});
export type SyncStarted = z.infer<typeof SyncStarted>;

type Deps = Pick<ControlDeps, 'state' | 'queue' | 'streams' | 'listings'>;

export const syncRoutes = (deps: Deps): Route[] => [
  route('POST /api/sync', {
    summary: 'Makes streams due now, so that the worker runs them. Running runs are not interrupted.',
    uses: ['state', 'queue'],
    body: SyncRequest,
    status: 202,
    answer: SyncStarted,
    audit: ({ body }) => ({ action: 'sync.start', target: targetOf(body) }),
    async handle({ body, signal }) {
      const asked = { at: Date.now(), streams: chooseFeeds(deps, body) };
      // The scheduler skips a stream that a backfill holds, so the request is repeated until the stream has a run.
      return waitUntilDone(deps, asked, { seconds: body.wait, signal }, async (streams) => {
        for (const { source, stream: name } of streams) await syncNow(deps, { source, stream: name });
      });
    },
  }),
  route('GET /api/sync/{id}', {
    summary: 'The progress of a sync that was started with POST /api/sync.',
    query: z.strictObject({ wait }),
    answer: SyncStarted,
    handle: ({ id, query, signal }) => waitUntilDone(deps, parseId(id), { seconds: query.wait, signal }),
  }),
];

interface Asked {
  at: number;
  streams: ReadonlyArray<{ source: string; stream: SyncName }>;
}

async function waitUntilDone(
  { state, streams }: Pick<Deps, 'state' | 'streams'>,
  asked: Asked,
  { seconds, signal }: { seconds: number; signal: AbortSignal },
  start?: (streams: Asked['streams']) => Promise<void>,
): Promise<SyncStarted> {
  const isRequested = ({ source, stream: name }: Asked['streams'][number]): boolean =>
    asked.streams.some((one) => one.source === source && one.stream === name);
  const filterWarnings = warningsOf(streams.filter(isRequested));
  const until = Date.now() + seconds * 1000;
  await start?.(asked.streams);
  for (;;) {
    const found = await look(state, asked);
    if (found.done || Date.now() >= until) return { ...found, warnings: filterWarnings };
    await sleep(LOOK_EVERY_MS, undefined, { signal }).catch((cause: unknown) => {
      throw new Cancelled('the client disconnected while it waited for the sync', { cause });
    });
    await start?.(found.streams.filter(({ runId }) => runId === null));
  }
}

/** Listings only if they are named: they are due once a day, and each takes many requests. */
function chooseFeeds(
  { streams, listings }: Deps,
  { source, streams: wanted }: z.infer<typeof SyncRequest>,
): Asked['streams'] {
  const events = wanted?.filter((name) => name !== 'links');
  const chosen = events?.length === 0 && wanted?.length ? [] : chooseStreams(streams, { source, streams: events });
  if (!wanted?.includes('links')) return chosen;
  const links = listings.filter((one) => source === undefined || one.source === source);
  if (links.length === 0)
    throw new HttpError(404, 'links are not listed here', { next: 'add links: { every: 1d } to the source' });
  return [...chosen, ...links];
}

/** The run for a request is the newest that had not ended when the request came: a running one, or the one it started. */
async function look(state: Queryable, asked: Asked): Promise<Omit<SyncStarted, 'warnings'>> {
  type Found = SyncStarted['streams'][number];
  const [sources, names] = [asked.streams.map(({ source }) => source), asked.streams.map(({ stream }) => stream)];
  const streams = await state.query<Found>(sql`
    select k.source, k.stream, r.id as "runId", r.state, r.message
    from unnest(${sources}::text[], ${names}::text[]) with ordinality as k (source, stream, place)
    left join lateral (
      select id, state, message from tributary.runs r
      where (r.source, r.stream) = (k.source, k.stream) and kind in ('sync', 're-sweep')
        and (finished_at is null or finished_at >= to_timestamp(${asked.at}::float8 / 1000))
      order by started_at desc limit 1
    ) r on true
    order by place`);
  const hasEnded = ({ state: ended }: Found): boolean => ended !== null && ended !== 'running';
  return {
    id: idOf(asked),
    done: streams.every(hasEnded),
    ok: streams.some((one) => hasEnded(one) && one.state !== 'done') ? false : streams.every(hasEnded) || null,
    streams,
  };
}

/** The id contains what was requested and when, so that any server can report on it, even after a restart. */
const idOf = ({ at, streams }: Asked): string =>
  [at, ...streams.map(({ source, stream: name }) => `${source}.${name}`)].join('~');

function parseId(id: string): Asked {
  const [at = '', ...rest] = id.split('~');
  const streams = rest.flatMap((one) => {
    const [source = '', name] = one.split('.');
    const known = anyStream.options.find((each) => each === name);
    return known ? [{ source, stream: known }] : [];
  });
  if (/^\d{13}$/.test(at) && streams.length > 0 && streams.length === rest.length) return { at: Number(at), streams };
  throw new HttpError(404, 'there is no such sync', { next: 'use the id of POST /api/sync' });
}
