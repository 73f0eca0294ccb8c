import type { Queryable } from '../../cursor/database/index.ts';
import { isoOf, sql } from '../../cursor/database/sql.ts';
import { readRunLog } from '../../cursor/run-log.ts';
import { listRuns, RUN_KINDS, RUN_STATES, type RunRecord } from '../../cursor/runs.ts';
import { anyStream, byName, count, figure, HttpError, limit, listOf, moment, named, shortText, z } from '../answers.ts';
import type { ControlDeps } from '../dependencies.ts';
import { type Route, route } from '../route.ts';

const lastRun = {
  id: z.string(),
  kind: z.enum(RUN_KINDS),
  state: z.enum(RUN_STATES),
  startedAt: moment,
  finishedAt: moment.nullable(),
  message: z.string().nullable(),
};

export const LastRun = z.strictObject(lastRun);

const RunRow = named('RunRow', {
  ...lastRun,
  source: z.string(),
  stream: anyStream,
  durationSeconds: figure.nullable().describe('null while it runs'),
  read: count,
  new: count,
  changed: count,
  unchanged: count,
  quarantined: count,
  requests: count,
  tooManyRequests: count,
  sinks: z.nullable(byName(z.strictObject({ new: count, changed: count, unchanged: count }))),
});

const Runs = named('Runs', {
  runs: z.array(RunRow),
  next: z.string().nullable().describe('`before` of the next page'),
});

const RunDetail = named(
  'RunDetail',
  RunRow.extend({
    contradictions: byName(count).describe('per column: how often an alias contradicted its canonical field'),
    typeMismatches: byName(count).describe('per column: how often a value did not fit'),
    schemaChanges: z.array(z.string()),
    windows: listOf({
      sink: z.string(),
      start: moment,
      end: moment,
      certified: z.boolean(),
      rows: count,
      tries: count,
      note: z.string().nullable(),
    }).describe('the windows of the ledger that this run read last, at most 200'),
  }),
);

export type LastRun = z.infer<typeof LastRun>;
export type RunRow = z.infer<typeof RunRow>;
export type Runs = z.infer<typeof Runs>;
export type RunDetail = z.infer<typeof RunDetail>;

const RunLog = named('RunLog', {
  lines: listOf({
    at: moment,
    level: z.enum(['debug', 'info', 'warn', 'error']),
    message: z.string(),
    details: byName(z.string()),
  }).describe('the last 200, oldest first'),
  requests: listOf({
    at: moment,
    from: moment.nullable().describe('null: a page of the listing of links, which has no range'),
    to: moment.nullable().describe('exclusive'),
    order: z.enum(['asc', 'desc']),
    page: count,
    limit: count,
    rows: count.nullable().describe('null: the response was not a page'),
    ms: count,
    status: count.nullable().describe('null: no response, or an unreadable one'),
  }).describe('the last 500, oldest first'),
});
export type RunLog = z.infer<typeof RunLog>;

const RunsQuery = z
  .strictObject({
    source: shortText,
    stream: anyStream,
    state: z.enum(RUN_STATES),
    kind: z.enum(RUN_KINDS),
    before: shortText.describe('`next` of the previous page'),
  })
  .partial()
  .extend({ limit: limit(50) });

export const runsRoutes = ({ state }: Pick<ControlDeps, 'state'>): Route[] => [
  route('GET /api/runs', {
    summary: 'The history of runs, newest first.',
    query: RunsQuery,
    answer: Runs,
    async handle({ query }) {
      // One more row than is shown reveals whether there is a next page.
      const found = await listRuns(state, { ...query, limit: query.limit + 1 });
      const runs = found.slice(0, query.limit).map(toRow);
      return { runs, next: found.length > query.limit ? (runs.at(-1)?.id ?? null) : null };
    },
  }),
  route('GET /api/runs/{id}', {
    summary: 'One run, with contradictions and type mismatches of its records.',
    answer: RunDetail,
    async handle({ id }) {
      const [found] = await state.query<Omit<RunDetail, keyof RunRow | 'windows'>>(
        sql`select contradictions, misfits as "typeMismatches", schema_changes as "schemaChanges" from tributary.runs where id = ${id}`,
      );
      const [run] = found ? await listRuns(state, { id, limit: 1 }) : [];
      if (!found || !run) throw new HttpError(404, 'there is no such run');
      return { ...toRow(run), ...found, windows: await readWindows(state, id) };
    },
  }),
  route('GET /api/runs/{id}/log', {
    summary: 'The last log lines and requests of a run of the last seven days, also while it runs.',
    answer: RunLog,
    async handle({ id }) {
      const [run] = await state.query(sql`select from tributary.runs where id = ${id}`);
      if (!run) throw new HttpError(404, 'there is no such run');
      const { line, request } = await readRunLog(state, id);
      // The rows match the schema, because only `keepRunLog` writes them.
      return { lines: line, requests: request } as RunLog;
    },
  }),
];

/** The cast is safe: the table's constraints allow only these kinds and states. */
const toRow = (run: RunRecord): RunRow => ({
  ...(run as Omit<RunRow, 'durationSeconds'>),
  durationSeconds: run.finishedAt === null ? null : (Date.parse(run.finishedAt) - Date.parse(run.startedAt)) / 1000,
});

async function readWindows(state: Queryable, id: string): Promise<RunDetail['windows']> {
  return state.query<RunDetail['windows'][number]>(sql`
    select sink, ${isoOf('start_at')} as start, ${isoOf('end_at')} as "end", state = 'certified' as certified, rows, tries, note
    from tributary.windows w
    where run_id = ${id} and exists (
      select from tributary.runs r where r.id = ${id} and (r.source, r.stream) = (w.source, w.stream)
    )
    order by start_at, sink limit 200`);
}
