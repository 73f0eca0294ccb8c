import type { Queryable } from '../../cursor/database.ts';
import { listRuns, RUN_KINDS, RUN_STATES, type RunRecord } from '../../cursor/run-history.ts';
import type { RunDetail, RunRow, Runs } from '../api-types.ts';
import type { ControlDeps } from '../deps.ts';
import { oneOf, shortText, stream } from '../json-schema.ts';
import { limit, limitOf } from '../params.ts';
import { type Ask, Refusal, type Route } from '../route.ts';

const USUAL = 50;

export const runsRoutes = ({ state }: Pick<ControlDeps, 'state'>): Route[] => [
  {
    method: 'GET',
    path: '/api/runs',
    summary: 'The history of runs, the newest first.',
    query: {
      source: shortText,
      stream,
      state: oneOf(...RUN_STATES),
      kind: oneOf(...RUN_KINDS),
      limit: limit(USUAL),
      before: { ...shortText, description: '`next` of the page before' },
    },
    answer: 'Runs',
    handle: (ask) => readRuns(state, ask),
  },
  {
    method: 'GET',
    path: '/api/runs/{id}',
    summary: 'One run, with what was odd about its records.',
    answer: 'RunDetail',
    handle: ({ params }) => readRun(state, params.id ?? ''),
  },
];

async function readRuns(state: Queryable, ask: Ask): Promise<Runs> {
  const { source, stream, state: ended, kind, before } = ask.params;
  const most = limitOf(ask, USUAL);
  // One more than is shown tells whether there is a next page.
  const found = await listRuns(state, { source, stream, state: ended, kind, before, limit: most + 1 });
  const runs = found.slice(0, most).map(toRow);
  return { runs, next: found.length > most ? (runs.at(-1)?.id ?? null) : null };
}

async function readRun(state: Queryable, id: string): Promise<RunDetail> {
  const [found] = await state.query<{ source: string; stream: string } & Omit<RunDetail, keyof RunRow>>({
    text: 'select source, stream, contradictions, misfits, schema_changes as "schemaChanges" from tributary.runs where id = $1',
    values: [id],
  });
  const [run] = found ? await listRuns(state, { id, limit: 1 }) : [];
  if (!found || !run) throw new Refusal(404, 'there is no such run');
  const { contradictions, misfits, schemaChanges } = found;
  return { ...toRow(run), contradictions, misfits, schemaChanges };
}

/** Kinds and states are those that the table allows. */
const toRow = (run: RunRecord): RunRow => ({
  ...(run as Omit<RunRow, 'durationSeconds'>),
  durationSeconds: run.finishedAt === null ? null : (Date.parse(run.finishedAt) - Date.parse(run.startedAt)) / 1000,
});
