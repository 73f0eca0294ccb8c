import type { Queryable } from '../../cursor/database.ts';
import {
  cancelBackfill,
  enqueueBackfill,
  pauseBackfill,
  readBackfills,
  resumeBackfill,
  retryBackfill,
  type Backfill as StoredBackfill,
} from '../../jobs/backfills.ts';
import { ConfigError } from '../../model/errors.ts';
import { toIso } from '../../model/instant.ts';
import { priceBackfill } from '../../sync/price.ts';
import { reportPrices } from '../../sync/price-report.ts';
import { unreadChunks } from '../../sync/unread.ts';
import type { Backfill, BackfillAction, BackfillPrice, BackfillRequest, Backfills } from '../api-types.ts';
import { chooseStreams } from '../choose.ts';
import type { ControlDeps } from '../deps.ts';
import { isoOrNull, windowOf } from '../params.ts';
import { type Ask, Refusal, type Route } from '../route.ts';

type Deps = Pick<ControlDeps, 'state' | 'queue' | 'sinks' | 'streams'>;

const VERBS: Readonly<Record<BackfillAction, typeof pauseBackfill>> = {
  pause: pauseBackfill,
  resume: resumeBackfill,
  cancel: cancelBackfill,
  retry: retryBackfill,
};

const SUMMARIES: Readonly<Record<BackfillAction, string>> = {
  pause: 'What is being read is given back after the page in hand; the rest waits.',
  resume: 'Goes on where it was paused.',
  cancel: 'For good. What it has read stays.',
  retry: 'Reads again the windows that failed, and only those.',
};

export const backfillRoutes = (deps: Deps): Route[] => [
  {
    method: 'GET',
    path: '/api/backfills',
    summary: 'Backfills that were given to the queue, the newest first.',
    answer: 'Backfills',
    handle: async (): Promise<Backfills> => ({ backfills: await listBackfills(deps.state) }),
  },
  {
    method: 'POST',
    path: '/api/backfills/price',
    summary: 'What a backfill would cost. Looking takes a few requests to the service, and some seconds.',
    body: 'BackfillRequest',
    answer: 'BackfillPrice',
    handle: (ask) => price(deps, ask),
  },
  {
    method: 'POST',
    path: '/api/backfills',
    summary: 'Gives a backfill to the queue: one for each stream.',
    body: 'BackfillRequest',
    status: 201,
    answer: 'Backfills',
    handle: (ask) => start(deps, ask),
  },
  {
    method: 'GET',
    path: '/api/backfills/{id}',
    summary: 'One backfill.',
    answer: 'Backfill',
    handle: ({ params }) => readBackfill(deps.state, params.id ?? ''),
  },
  ...(Object.keys(VERBS) as BackfillAction[]).map(
    (action): Route => ({
      method: 'POST',
      path: `/api/backfills/{id}/${action}`,
      summary: SUMMARIES[action],
      answer: 'Backfill',
      handle: ({ params }) => act(deps, params.id ?? '', action),
    }),
  ),
];

function chosenOf({ streams }: Deps, ask: Ask) {
  const { source, streams: names, from, to, force = false } = ask.body as BackfillRequest;
  const chosen = chooseStreams(streams, { ...(source && { source }), ...(names && { streams: names }) });
  const window = windowOf({ ...ask, params: { from, to } }, { start: 0, end: 0 });
  return { jobs: chosen.map(({ job }) => job), request: { window, force } };
}

async function price(deps: Deps, ask: Ask): Promise<BackfillPrice> {
  const { jobs, request } = chosenOf(deps, ask);
  const { signal } = ask;
  const prices = await Promise.all(jobs.map((job) => priceBackfill({ ...deps, signal }, job, request)));
  return reportPrices(prices, jobs);
}

async function start(deps: Deps, ask: Ask): Promise<Backfills> {
  const { jobs, request } = chosenOf(deps, ask);
  const ids = await Promise.all(
    jobs.map(async (job) => {
      const { source, stream } = job;
      const chunks = await unreadChunks({ ...deps, signal: ask.signal }, job, request);
      return enqueueBackfill(deps, { source, stream, ...request, chunks });
    }),
  );
  const backfills = await listBackfills(deps.state);
  return { backfills: backfills.filter(({ id }) => ids.includes(id)) };
}

async function act(deps: Deps, id: string, action: BackfillAction): Promise<Backfill> {
  await readBackfill(deps.state, id);
  try {
    await VERBS[action](deps, id);
  } catch (error) {
    // Recovery: it is there, so what cannot be is this verb in the state that it is in.
    if (error instanceof ConfigError)
      throw new Refusal(409, error.message, { ...(error.next && { next: error.next }), kept: 'nothing was changed' });
    throw error;
  }
  return readBackfill(deps.state, id);
}

async function readBackfill(state: Queryable, id: string): Promise<Backfill> {
  const [found] = await listBackfills(state, id);
  if (!found) throw new Refusal(404, 'there is no such backfill');
  return found;
}

export async function listBackfills(state: Queryable, id?: string): Promise<Backfill[]> {
  const found = await readBackfills(state, id);
  const pace = found.some(({ state }) => state === 'queued') ? await readPace(state) : new Map<string, number>();
  return found.map((backfill) => toBackfill(backfill, pace.get(`${backfill.source}/${backfill.stream}`)));
}

/** Seconds that a window of each stream took lately. A stream's windows are read one after another. */
async function readPace(state: Queryable): Promise<Map<string, number>> {
  const rows = await state.query<{ source: string; stream: string; seconds: number }>({
    text: `
      select k.source, k.stream, avg(r.seconds)::float8 as seconds
      from (select distinct source, stream from tributary.backfills where state = 'queued') k
      join lateral (
        select extract(epoch from finished_at - started_at) as seconds from tributary.runs r
        where (r.source, r.stream) = (k.source, k.stream) and kind = 'backfill' and state = 'done'
          and started_at > now() - interval '1 day'
        order by started_at desc limit 10
      ) r on true
      group by k.source, k.stream`,
  });
  return new Map(rows.map(({ source, stream, seconds }) => [`${source}/${stream}`, seconds]));
}

const ACTIONS: Readonly<Record<Backfill['state'], BackfillAction[]>> = {
  queued: ['pause', 'cancel'],
  paused: ['resume', 'cancel'],
  failed: ['retry'],
  cancelled: [],
  done: [],
};

function toBackfill(stored: StoredBackfill, secondsAWindow: number | undefined): Backfill {
  const { id, source, stream, force, state, windows, rows, message } = stored;
  const ended = windows.done + windows.failed;
  const left = windows.queued + windows.running;
  const isMoving = state === 'queued' && windows.done > 0 && secondsAWindow !== undefined;
  return {
    id,
    source,
    stream,
    from: toIso(stored.start),
    to: toIso(stored.end),
    force,
    state,
    running: state === 'queued' && windows.running > 0,
    createdAt: toIso(stored.createdAt),
    finishedAt: isoOrNull(stored.finishedAt),
    windows,
    // A backfill without windows had nothing to do.
    progress: ended + left === 0 ? 1 : ended / (ended + left),
    rows,
    etaSeconds: isMoving ? Math.round(left * secondsAWindow) : null,
    message,
    actions: ACTIONS[state],
  };
}
