import type { Queryable } from '../../cursor/database/index.ts';
import { listRuns, RUN_KINDS, RUN_STATES, type RunRecord } from '../../cursor/runs.ts';
import type { StreamName } from '../../model/streams.ts';
import {
  byName,
  count,
  figure,
  flag,
  HttpError,
  limit,
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
  type z,
} from '../answers.ts';
import type { ControlDeps } from '../dependencies.ts';
import { type Route, route } from '../route.ts';
import type { Backfill } from './backfills.ts';

const lastRun = {
  id: text,
  kind: oneOf(RUN_KINDS),
  state: oneOf(RUN_STATES),
  startedAt: moment,
  finishedAt: orNull(moment),
  message: orNull(text),
};

export const LastRun = object(lastRun);

const RunRow = named(
  'RunRow',
  object({
    ...lastRun,
    source: text,
    stream,
    durationSeconds: orNull(figure).describe('null while it runs'),
    read: count,
    new: count,
    changed: count,
    unchanged: count,
    quarantined: count,
    requests: count,
    tooManyRequests: count,
  }),
);

const Runs = named('Runs', object({ runs: list(RunRow), next: orNull(text).describe('`before` of the next page') }));

const RunDetail = named(
  'RunDetail',
  RunRow.extend({
    contradictions: byName(count).describe('per column: how often an alias contradicted its canonical field'),
    typeMismatches: byName(count).describe('per column: how often a value did not fit'),
    schemaChanges: list(text),
    windows: list(
      object({
        sink: text,
        start: moment,
        end: moment,
        certified: flag,
        rows: count,
        tries: count,
        note: orNull(text),
      }),
    ).describe('the windows of the ledger that this run read last, at most 200'),
  }),
);

export type LastRun = z.infer<typeof LastRun>;
export type RunRow = z.infer<typeof RunRow>;
export type Runs = z.infer<typeof Runs>;
export type RunDetail = z.infer<typeof RunDetail>;

const RunsQuery = object({
  source: shortText,
  stream,
  state: oneOf(RUN_STATES),
  kind: oneOf(RUN_KINDS),
  before: shortText.describe('`next` of the page before'),
})
  .partial()
  .extend({ limit: limit(50) });

export const runsRoutes = ({ state }: Pick<ControlDeps, 'state'>): Route[] => [
  route({
    method: 'GET',
    path: '/api/runs',
    summary: 'The history of runs, newest first.',
    role: 'read',
    query: RunsQuery,
    answer: Runs,
    handle: ({ query }) => readRuns(state, query),
  }),
  route({
    method: 'GET',
    path: '/api/runs/{id}',
    summary: 'One run, with contradictions and type mismatches of its records.',
    role: 'read',
    answer: RunDetail,
    handle: ({ id }) => readRun(state, id),
  }),
];

async function readRuns(state: Queryable, query: z.infer<typeof RunsQuery>): Promise<Runs> {
  // One row more than is shown tells whether there is a next page.
  const found = await listRuns(state, { ...query, limit: query.limit + 1 });
  const runs = found.slice(0, query.limit).map(toRow);
  return { runs, next: found.length > query.limit ? (runs.at(-1)?.id ?? null) : null };
}

async function readRun(state: Queryable, id: string): Promise<RunDetail> {
  const [found] = await state.query<{ source: string; stream: string } & Omit<RunDetail, keyof RunRow | 'windows'>>({
    text: 'select source, stream, contradictions, misfits as "typeMismatches", schema_changes as "schemaChanges" from tributary.runs where id = $1',
    values: [id],
  });
  const [run] = found ? await listRuns(state, { id, limit: 1 }) : [];
  if (!found || !run) throw new HttpError(404, 'there is no such run');
  const { contradictions, typeMismatches, schemaChanges } = found;
  return { ...toRow(run), contradictions, typeMismatches, schemaChanges, windows: await readWindows(state, id) };
}

/** The kinds and states that the table's constraints allow. */
const toRow = (run: RunRecord): RunRow => ({
  ...(run as Omit<RunRow, 'durationSeconds'>),
  durationSeconds: run.finishedAt === null ? null : (Date.parse(run.finishedAt) - Date.parse(run.startedAt)) / 1000,
});

async function readWindows(state: Queryable, id: string): Promise<RunDetail['windows']> {
  type Found = Omit<RunDetail['windows'][number], 'start' | 'end'> & { start: Date; end: Date };
  const rows = await state.query<Found>({
    text: `
      select sink, start_at as start, end_at as "end", state = 'certified' as certified, rows, tries, note
      from tributary.windows w
      where run_id = $1 and exists (
        select from tributary.runs r where r.id = $1 and (r.source, r.stream) = (w.source, w.stream)
      )
      order by start_at, sink limit 200`,
    values: [id],
  });
  return rows.map((row) => ({ ...row, start: row.start.toISOString(), end: row.end.toISOString() }));
}

/** What is being read now. */
export const Activity = named(
  'Activity',
  object({
    kind: oneOf(['sync', 'backfill']),
    id: text.describe('of the run, or of the backfill'),
    source: text,
    stream,
    startedAt: moment,
    progress: orNull(share).describe('null if it cannot be known'),
    rows: orNull(count),
    rowsPerSecond: orNull(figure),
    etaSeconds: orNull(figure),
    paused: flag,
  }),
);
export type Activity = z.infer<typeof Activity>;

interface Held {
  source: string;
  stream: StreamName;
  last: LastRun | null;
  /** A process holds the stream's lease now. */
  leased: boolean;
}

/** A run that is marked as running, and whose process still holds the stream's lease. */
export const syncUnderWay = ({ source, stream, last, leased }: Held): Activity[] =>
  leased && last?.state === 'running' && last.kind === 'sync'
    ? [
        {
          kind: 'sync',
          id: last.id,
          source,
          stream,
          startedAt: last.startedAt,
          progress: null,
          rows: null,
          rowsPerSecond: null,
          etaSeconds: null,
          paused: false,
        },
      ]
    : [];

export const backfillUnderWay = (backfill: Backfill): Activity[] => {
  const { id, source, stream, createdAt, state, progress, rows, rowsPerSecond, etaSeconds } = backfill;
  if (state !== 'queued' && state !== 'paused') return [];
  const figures = { progress, rows, rowsPerSecond, etaSeconds, paused: state === 'paused' };
  return [{ kind: 'backfill', id, source, stream, startedAt: createdAt, ...figures }];
};
