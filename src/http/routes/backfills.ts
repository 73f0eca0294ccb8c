import type { Queryable } from '../../cursor/database/index.ts';
import {
  cancelBackfill,
  enqueueBackfill,
  pauseBackfill,
  readBackfills,
  resumeBackfill,
  retryBackfill,
  type Backfill as StoredBackfill,
} from '../../jobs/backfills.ts';
import { toIso } from '../../model/instant.ts';
import { unreadChunks } from '../../sync/backfill-stream.ts';
import { type PriceReport, priceBackfill, reportPrices } from '../../sync/price.ts';
import {
  byName,
  count,
  date,
  figure,
  flag,
  HttpError,
  list,
  moment,
  named,
  object,
  oneOf,
  orNull,
  share,
  shortText,
  stream,
  text,
  warnings,
  type z,
} from '../answers.ts';
import { type ControlDeps, chooseStreams, chooseWindow, isoOrNull, warningsOf } from '../dependencies.ts';
import { type Route, route } from '../route.ts';

const BACKFILL_ACTIONS = ['pause', 'resume', 'cancel', 'retry'] as const;
export type BackfillAction = (typeof BACKFILL_ACTIONS)[number];

const Backfill = named(
  'Backfill',
  object({
    id: text,
    source: text,
    stream,
    from: moment,
    to: moment.describe('exclusive'),
    force: flag,
    state: oneOf(['queued', 'paused', 'cancelled', 'done', 'failed']),
    running: flag.describe('whether a window of it is being read now'),
    createdAt: moment,
    finishedAt: orNull(moment),
    windows: object({ queued: count, running: count, done: count, failed: count }),
    progress: share.describe('of its windows'),
    rows: count,
    certified: share.describe('share of the range that is proven in every sink'),
    rowsPerSecond: orNull(figure).describe('of its windows lately'),
    etaSeconds: orNull(figure).describe('null if it is not running, or has read no window yet'),
    message: orNull(text),
    actions: list(oneOf(BACKFILL_ACTIONS)).describe('what can be done with it now'),
  }),
);
const Backfills = named('Backfills', object({ backfills: list(Backfill) }));
const BackfillsStarted = named('BackfillsStarted', object({ backfills: list(Backfill), warnings }));

const range = { from: moment, to: moment.describe('exclusive') };
const cost = { perSecond: figure, seconds: figure };

const BackfillPrice = named(
  'BackfillPrice',
  object({
    streams: list(
      object({
        source: text,
        stream,
        ...range,
        toRead: list(object(range)),
        certified: share,
        rows: count,
        isCounted: flag.describe('false: rows and requests are guesses'),
        requests: count,
        probes: count,
      }),
    ),
    sources: byName(
      object({
        current: object(cost),
        others: list(object({ plan: text, ...cost })),
        pollShare: share.describe('of the budget that syncs use meanwhile: they go first'),
      }),
    ),
    warnings,
  }),
);

export type BackfillPrice = PriceReport & { warnings: string[] };

const BackfillRequest = named(
  'BackfillRequest',
  object({
    source: shortText.optional().describe('default: all sources'),
    streams: list(stream).max(3).optional().describe('default: all streams'),
    from: date,
    to: date.describe('exclusive'),
    force: flag.default(false).describe('also what is proven complete already'),
  }),
);

export type Backfill = z.infer<typeof Backfill>;
export type Backfills = z.infer<typeof Backfills>;
export type BackfillRequest = z.infer<typeof BackfillRequest>;

type Deps = Pick<ControlDeps, 'state' | 'queue' | 'sinks' | 'streams'>;

const VERBS: Readonly<Record<BackfillAction, typeof pauseBackfill>> = {
  pause: pauseBackfill,
  resume: resumeBackfill,
  cancel: cancelBackfill,
  retry: retryBackfill,
};

const SUMMARIES: Readonly<Record<BackfillAction, string>> = {
  pause: 'Stops after the current page; the rest waits.',
  resume: 'Goes on where it was paused.',
  cancel: 'For good. What it has read stays.',
  retry: 'Reads again the windows that failed, and only those.',
};

export const backfillRoutes = (deps: Deps): Route[] => [
  route({
    method: 'GET',
    path: '/api/backfills',
    summary: 'Queued and finished backfills, newest first.',
    role: 'read',
    answer: Backfills,
    handle: async () => ({ backfills: await listBackfills(deps.state) }),
  }),
  route({
    method: 'POST',
    path: '/api/backfills/price',
    summary: 'Estimates the cost of a backfill, with a few requests to the service. It takes some seconds.',
    role: 'operator',
    body: BackfillRequest,
    answer: BackfillPrice,
    handle: ({ body, signal }) => price(deps, body, signal),
  }),
  route({
    method: 'POST',
    path: '/api/backfills',
    summary: 'Enqueues a backfill for each stream.',
    role: 'operator',
    uses: ['state', 'queue'],
    body: BackfillRequest,
    status: 201,
    answer: BackfillsStarted,
    audit: ({ body: { source = '*', streams = ['*'], from, to, force } }) => ({
      action: 'backfill.start',
      target: streams.map((name) => `${source}/${name}`).join(', '),
      detail: { from, to, force },
    }),
    handle: ({ body, signal }) => start(deps, body, signal),
  }),
  route({
    method: 'GET',
    path: '/api/backfills/{id}',
    summary: 'One backfill.',
    role: 'read',
    answer: Backfill,
    handle: ({ id }) => readBackfill(deps.state, id),
  }),
  ...BACKFILL_ACTIONS.map((action) =>
    route({
      method: 'POST',
      path: `/api/backfills/{id}/${action}`,
      summary: SUMMARIES[action],
      role: 'operator',
      uses: ['state', 'queue'],
      answer: Backfill,
      audit: ({ id }) => ({ action: `backfill.${action}`, target: id }),
      handle: ({ id }) => act(deps, id, action),
    }),
  ),
];

function chosenOf({ streams }: Deps, body: BackfillRequest) {
  const chosen = chooseStreams(streams, body);
  const jobs = chosen.map(({ job }) => job);
  return { jobs, doubtful: warningsOf(chosen), request: { window: chooseWindow(body), force: body.force } };
}

async function price(deps: Deps, body: BackfillRequest, signal: AbortSignal): Promise<BackfillPrice> {
  const { jobs, request, doubtful } = chosenOf(deps, body);
  const prices = await Promise.all(jobs.map((job) => priceBackfill({ ...deps, signal }, job, request)));
  return { ...reportPrices(prices, jobs), warnings: doubtful };
}

async function start(
  deps: Deps,
  body: BackfillRequest,
  signal: AbortSignal,
): Promise<z.infer<typeof BackfillsStarted>> {
  const { jobs, request, doubtful } = chosenOf(deps, body);
  const ids = await Promise.all(
    jobs.map(async (job) => {
      const { source, stream } = job;
      const chunks = await unreadChunks({ ...deps, signal }, job, request);
      return enqueueBackfill(deps, { source, stream, ...request, chunks });
    }),
  );
  const backfills = await listBackfills(deps.state);
  return { backfills: backfills.filter(({ id }) => ids.includes(id)), warnings: doubtful };
}

async function act(deps: Deps, id: string, action: BackfillAction): Promise<Backfill> {
  await readBackfill(deps.state, id);
  await VERBS[action](deps, id);
  return readBackfill(deps.state, id);
}

async function readBackfill(state: Queryable, id: string): Promise<Backfill> {
  const [found] = await listBackfills(state, id);
  if (!found) throw new HttpError(404, 'there is no such backfill');
  return found;
}

export async function listBackfills(state: Queryable, id?: string): Promise<Backfill[]> {
  const found = await readBackfills(state, id);
  const speed = found.some(({ state }) => state === 'queued') ? await readSpeeds(state) : new Map<string, Speed>();
  return found.map((backfill) => toBackfill(backfill, speed.get(`${backfill.source}/${backfill.stream}`)));
}

interface Speed {
  seconds: number;
  rowsPerSecond: number | null;
}

/** How long recent windows of each stream took. A stream's windows are read one after another. */
async function readSpeeds(state: Queryable): Promise<Map<string, Speed>> {
  const rows = await state.query<Speed & { source: string; stream: string }>({
    text: `
      select k.source, k.stream, avg(r.seconds)::float8 as seconds,
        (sum(r.rows) / nullif(sum(r.seconds), 0))::float8 as "rowsPerSecond"
      from (select distinct source, stream from tributary.backfills where state = 'queued') k
      join lateral (
        select extract(epoch from finished_at - started_at) as seconds, rows_read as rows from tributary.runs r
        where (r.source, r.stream) = (k.source, k.stream) and kind = 'backfill' and state = 'done'
          and started_at > now() - interval '1 day'
        order by started_at desc limit 10
      ) r on true
      group by k.source, k.stream`,
  });
  return new Map(rows.map(({ source, stream, ...speed }) => [`${source}/${stream}`, speed]));
}

const ACTIONS: Readonly<Record<Backfill['state'], BackfillAction[]>> = {
  queued: ['pause', 'cancel'],
  paused: ['resume', 'cancel'],
  failed: ['retry'],
  cancelled: [],
  done: [],
};

function toBackfill(stored: StoredBackfill, speed: Speed | undefined): Backfill {
  const { id, source, stream, force, state, windows, rows, certified, message } = stored;
  const ended = windows.done + windows.failed;
  const left = windows.queued + windows.running;
  const isMoving = state === 'queued' && windows.done > 0 && speed !== undefined;
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
    certified,
    rowsPerSecond: isMoving && speed.rowsPerSecond !== null ? Math.round(speed.rowsPerSecond) : null,
    etaSeconds: isMoving ? Math.round(left * speed.seconds) : null,
    message,
    actions: ACTIONS[state],
  };
}
