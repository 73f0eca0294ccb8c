import { sql } from '../../cursor/database/sql.ts';
import { readRunLog } from '../../cursor/run-log.ts';
import { byName, count, HttpError, listOf, moment, named, z } from '../answers.ts';
import type { ControlDeps } from '../dependencies.ts';
import { type Route, route } from '../route.ts';

const RunLog = named('RunLog', {
  lines: listOf({
    at: moment,
    level: z.enum(['debug', 'info', 'warn', 'error']),
    message: z.string(),
    details: byName(z.string()),
  }).describe('the last 200, in the order of time'),
  requests: listOf({
    at: moment,
    from: moment.nullable().describe('null: a page of all links, which has no range'),
    to: moment.nullable().describe('exclusive'),
    order: z.enum(['asc', 'desc']),
    page: count,
    limit: count,
    rows: count.nullable().describe('null: the answer was no page'),
    ms: count,
    status: count.nullable().describe('null: no answer, or none that could be read'),
  }).describe('the last 500, in the order of time'),
});
export type RunLog = z.infer<typeof RunLog>;

export const runLogRoute = ({ state }: Pick<ControlDeps, 'state'>): Route =>
  route('GET /api/runs/{id}/log', {
    summary: 'The last lines and requests of a run of the last seven days, while it runs too.',
    role: 'read',
    answer: RunLog,
    async handle({ id }) {
      const [run] = await state.query(sql`select from tributary.runs where id = ${id}`);
      if (!run) throw new HttpError(404, 'there is no such run');
      const { line, request } = await readRunLog(state, id);
      // What was written is what the schema says: only `keepRunLog` writes it.
      return { lines: line, requests: request } as RunLog;
    },
  });
