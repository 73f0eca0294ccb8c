import type { Queryable } from '../../cursor/database/index.ts';
import { isoOrNull } from '../../cursor/database/sql.ts';
import {
  actionsIn,
  checkNewBackfills,
  enqueueBackfills,
  readBackfills,
  type Backfill as StoredBackfill,
  steerBackfill,
} from '../../jobs/backfills.ts';
import { toIso } from '../../model/instant.ts';
import { type PriceReport, priceBackfill, reportPrices } from '../../sync/backfill/price.ts';
import { unreadChunks } from '../../sync/backfill/unread.ts';
import {
  byName,
  choice,
  count,
  date,
  figure,
  HttpError,
  listOf,
  moment,
  named,
  of,
  range,
  share,
  tally,
  warnings,
  z,
} from '../answers.ts';
import { type ControlDeps, chooseStreams, chooseWindow, targetOf, warningsOf } from '../dependencies.ts';
import { type Route, route } from '../route.ts';
import { type Extent, paceOf, readBackfillExtents } from './under-way.ts';

/** The actions and their summaries. */
const ACTIONS = {
  pause: 'Stops after the current page; the rest waits.',
  resume: 'Resumes where it was paused.',
  cancel: 'This cannot be undone. What it has read is kept.',
  retry: 'Reads only the failed windows again.',
} as const;
export type BackfillAction = keyof typeof ACTIONS;

const Backfill = named('Backfill', {
  id: z.string(),
  ...of,
  ...range,
  force: z.boolean(),
  state: z.enum(['queued', 'paused', 'cancelled', 'done', 'failed']),
  running: z.boolean().describe('whether a window of it is being read now'),
  createdAt: moment,
  finishedAt: moment.nullable(),
  windows: z.strictObject({ queued: count, running: count, done: count, failed: count }),
  progress: share.describe('share of the rows if they were estimated, otherwise of the time'),
  rows: count,
  pricedRows: count.nullable().describe('estimated number of rows when it was started'),
  certified: share.describe('share of the range that is proven in every sink'),
  rowsPerSecond: figure.nullable(),
  etaSeconds: figure.nullable().describe('null if it is not running, or has just begun'),
  message: z.string().nullable(),
  actions: z.array(z.enum(Object.keys(ACTIONS) as BackfillAction[])).describe('the actions that are possible now'),
});
const Backfills = named('Backfills', { backfills: z.array(Backfill) });
const BackfillsStarted = named('BackfillsStarted', { backfills: z.array(Backfill), warnings });

const cost = { perSecond: figure, seconds: figure };

const BackfillPrice = named('BackfillPrice', {
  streams: listOf({
    ...of,
    ...range,
    toRead: listOf(range),
    certified: share,
    rows: count,
    isCounted: z.boolean().describe('false: rows and requests are estimates'),
    requests: count,
    probes: count,
  }),
  sources: byName(
    z.strictObject({
      current: z.strictObject(cost),
      others: listOf({ plan: z.string(), ...cost }),
      pollShare: share.describe('share of the budget that syncs use meanwhile: they go first'),
    }),
  ),
  warnings,
});

export type BackfillPrice = PriceReport & { warnings: string[] };

const BackfillRequest = named('BackfillRequest', {
  ...choice,
  from: date,
  to: date.describe('exclusive'),
  force: z.boolean().default(false).describe('also read what is already proven complete'),
});

const BackfillStart = named(
  'BackfillStart',
  BackfillRequest.extend({
    pricedRows: tally
      .optional()
      .describe('estimated rows by source/stream, such as {"main/clicks": 48000}: progress is computed from them'),
  }),
);

export type Backfill = z.infer<typeof Backfill>;
export type Backfills = z.infer<typeof Backfills>;
export type BackfillRequest = z.infer<typeof BackfillRequest>;
export type BackfillStart = z.infer<typeof BackfillStart>;

type BackfillsStarted = z.infer<typeof BackfillsStarted>;

type Deps = Pick<ControlDeps, 'state' | 'queue' | 'sinks' | 'streams'>;

export const backfillRoutes = (deps: Deps): Route[] => [
  route('GET /api/backfills', {
    summary: 'Queued and finished backfills, newest first.',
    answer: Backfills,
    handle: async () => ({ backfills: await listBackfills(deps.state) }),
  }),
  route('POST /api/backfills/price', {
    summary: 'Estimates the cost of a backfill, with a few requests to the service. It takes some seconds.',
    body: BackfillRequest,
    answer: BackfillPrice,
    async handle({ body, signal }) {
      const { jobs, request, doubtful } = chosenOf(deps, body);
      const prices = await Promise.all(jobs.map((job) => priceBackfill({ ...deps, signal }, job, request)));
      return { ...reportPrices(prices, jobs), warnings: doubtful };
    },
  }),
  route('POST /api/backfills', {
    summary: 'Enqueues a backfill for each stream: all of them, or none.',
    uses: ['state', 'queue'],
    body: BackfillStart,
    status: 201,
    answer: BackfillsStarted,
    audit: ({ body }) => ({
      action: 'backfill.start',
      target: targetOf(body),
      detail: { from: body.from, to: body.to, force: body.force },
    }),
    handle: ({ body, signal }) => start(deps, body, signal),
  }),
  route('GET /api/backfills/{id}', {
    summary: 'One backfill.',
    answer: Backfill,
    handle: ({ id }) => readBackfill(deps.state, id),
  }),
  ...(Object.keys(ACTIONS) as BackfillAction[]).map((action) =>
    route(`POST /api/backfills/{id}/${action}`, {
      summary: ACTIONS[action],
      uses: ['state', 'queue'],
      answer: Backfill,
      audit: ({ id }) => ({ action: `backfill.${action}`, target: id }),
      async handle({ id }) {
        await readBackfill(deps.state, id);
        await steerBackfill(deps, id, action);
        return readBackfill(deps.state, id);
      },
    }),
  ),
];

function chosenOf({ streams }: Deps, body: BackfillRequest) {
  const chosen = chooseStreams(streams, body);
  const jobs = chosen.map(({ job }) => job);
  return { jobs, doubtful: warningsOf(chosen), request: { window: chooseWindow(body), force: body.force } };
}

async function start(deps: Deps, body: BackfillStart, signal: AbortSignal): Promise<BackfillsStarted> {
  const { jobs, request, doubtful } = chosenOf(deps, body);
  await checkNewBackfills(
    deps.state,
    jobs.map(({ source, stream }) => ({ source, stream, ...request })),
  );
  const requests = await Promise.all(
    jobs.map(async (job) => {
      const { source, stream } = job;
      const chunks = await unreadChunks({ ...deps, signal }, job, request);
      return { source, stream, ...request, pricedRows: body.pricedRows?.[`${source}/${stream}`], chunks };
    }),
  );
  const ids = await enqueueBackfills(deps, requests);
  const backfills = await listBackfills(deps.state);
  return { backfills: backfills.filter(({ id }) => ids.includes(id)), warnings: doubtful };
}

async function readBackfill(state: Queryable, id: string): Promise<Backfill> {
  const [found] = await listBackfills(state, id);
  if (!found) throw new HttpError(404, 'there is no such backfill');
  return found;
}

export async function listBackfills(state: Queryable, id?: string): Promise<Backfill[]> {
  const found = await readBackfills(state, id);
  const extents = found.some(({ finishedAt }) => finishedAt === null) ? await readBackfillExtents(state) : [];
  const extentOf = new Map(extents.map((extent) => [extent.id, extent]));
  return found.map((backfill) => toBackfill(backfill, extentOf.get(backfill.id)));
}

function toBackfill(stored: StoredBackfill, extent: (Extent & { paused: boolean }) | undefined): Backfill {
  const { start, end, createdAt, finishedAt, rows, ...same } = stored;
  const { state, windows } = same;
  const ended = windows.done + windows.failed;
  const all = ended + windows.queued + windows.running;
  return {
    ...same,
    from: toIso(start),
    to: toIso(end),
    createdAt: toIso(createdAt),
    finishedAt: isoOrNull(finishedAt),
    running: state === 'queued' && windows.running > 0,
    // A backfill without windows had nothing to do.
    ...(extent
      ? paceOf(extent)
      : { progress: ended === all ? 1 : ended / all, rows, rowsPerSecond: null, etaSeconds: null }),
    actions: actionsIn(state),
  };
}
