import type { Queryable } from '../../cursor/database.ts';
import type { Sql } from '../../cursor/sql.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import { DAY_MS, type Window } from '../../model/window.ts';
import { stream } from '../api-schemas.ts';
import type { Rows, RowsPoint } from '../api-types.ts';
import type { ControlDeps } from '../deps.ts';
import { oneOf, shortText } from '../json-schema.ts';
import { date, windowOf } from '../params.ts';
import { type Ask, Refusal, type Route } from '../route.ts';

export const rowsRoute = ({ state }: Pick<ControlDeps, 'state'>): Route => ({
  method: 'GET',
  path: '/api/rows',
  summary: 'Rows by the hour or day in which runs brought them.',
  query: { per: { ...oneOf('hour', 'day'), default: 'hour' }, from: date, to: date, source: shortText, stream },
  answer: 'Rows',
  handle: (ask) => readRows(state, ask),
});

const HOUR_MS = 3_600_000;
/** A picture has no more columns than this. */
const MOST_POINTS = 1100;

async function readRows(state: Queryable, ask: Ask): Promise<Rows> {
  const per = ask.params.per === 'day' ? 'day' : 'hour';
  const step = per === 'day' ? DAY_MS : HOUR_MS;
  const now = Date.now();
  const usual = { start: floor(now, step) - (per === 'day' ? 29 : 47) * step, end: now };
  const asked = windowOf(ask, usual, now);
  const window = { start: floor(asked.start, step), end: asked.end };
  if ((window.end - window.start) / step > MOST_POINTS)
    throw new Refusal(400, `that is more than ${MOST_POINTS} ${per}s`, { next: 'ask for fewer, or for days' });
  type Found = Omit<RowsPoint, 'at'> & { source: string; stream: StreamName; at: Date };
  const found = await state.query<Found>(selectRows(per, window, ask.params));
  const series = new Map<string, Rows['series'][number]>();
  for (const { source, stream, at, ...figures } of found) {
    const key = `${source}/${stream}`;
    const one = series.get(key) ?? { source, stream, points: [] };
    one.points.push({ at: at.toISOString(), ...figures });
    series.set(key, one);
  }
  return { per, from: toIso(window.start), to: toIso(window.end), series: [...series.values()] };
}

const floor = (at: Instant, step: number): Instant => Math.floor(at / step) * step;

/** By when a run began, which there is an index for: a run that passes midnight counts for the day before. */
const selectRows = (per: 'hour' | 'day', { start, end }: Window, params: Ask['params']): Sql => ({
  text: `
    select source, stream, date_trunc($1, started_at, 'UTC') as at, count(*) as runs,
      count(*) filter (where state not in ('done', 'running')) as failed,
      sum(rows_read)::bigint as read, sum(rows_new)::bigint as new, sum(rows_changed)::bigint as changed,
      sum(rows_quarantined)::bigint as quarantined
    from tributary.runs
    where started_at >= $2 and started_at < $3 and ($4::text is null or source = $4) and ($5::text is null or stream = $5)
    group by source, stream, at order by source, stream, at`,
  values: [per, toIso(start), toIso(end), params.source ?? null, params.stream ?? null],
});
