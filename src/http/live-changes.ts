import { createHash } from 'node:crypto';
import type { Queryable } from '../cursor/database.ts';
import { listBackfills } from './routes/backfills.ts';
import type { Overview } from './routes/overview.ts';

export type Topic = 'coverage' | 'runs' | 'backfills' | 'quarantine' | 'schema' | 'budget' | 'verifications';

/** One short text for each topic, which changes when the topic does: what the live page is woken by. */
export type Marks = Readonly<Record<Exclude<Topic, 'verifications'>, string>>;

/** By indexes and small tables only: it is asked every few seconds, whatever the size of the history. */
export async function readMarks(state: Queryable): Promise<Marks> {
  const [row] = await state.query<Record<Exclude<keyof Marks, 'backfills'>, string | null>>({
    text: `
      select
        (select string_agg(concat_ws(' ', source, stream, sink, complete_through, updated_at), ',') from tributary.cursors) as coverage,
        (select string_agg(concat_ws(' ', r.id, r.state), ',') from (
          select distinct source, stream from tributary.schedules union select source, stream from tributary.cursors
        ) k cross join lateral (
          select id, state from tributary.runs r where (r.source, r.stream) = (k.source, k.stream)
          order by started_at desc limit 3
        ) r) as runs,
        (select concat_ws(' ', count(*), max(id), max(last_at)) from tributary.quarantine) as quarantine,
        (select max(id)::text from tributary.columns) as schema,
        (select concat_ws(' ', max(minute), sum(too_many)) from tributary.budget_use
          where minute > now() - interval '1 hour') as budget`,
  });
  const backfills = JSON.stringify(await listBackfills(state));
  const { coverage, runs, quarantine, schema, budget } = row ?? {};
  return {
    coverage: digest(coverage),
    runs: digest(runs),
    quarantine: digest(quarantine),
    schema: digest(schema),
    budget: digest(budget),
    backfills: digest(backfills),
  };
}

export const changedTopics = (before: Marks, after: Marks): Topic[] =>
  (Object.keys(after) as Array<keyof Marks>).filter((topic) => before[topic] !== after[topic]);

/** Whether anything but the passing of time has changed. */
export const overviewMark = (overview: Overview): string =>
  digest(JSON.stringify({ ...overview, now: '' }, (key, value) => (key === 'lagSeconds' ? 0 : value)));

const digest = (text: string | null | undefined): string =>
  createHash('sha256')
    .update(text ?? '')
    .digest('base64url')
    .slice(0, 16);
