import type { Queryable } from '../../cursor/database/index.ts';
import type { Sql } from '../../cursor/database/sql.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import { DAY_MS, type Window } from '../../model/window.ts';
import { chooseWindow } from '../choices.ts';
import type { ControlDeps } from '../dependencies.ts';
import { HttpError } from '../http-error.ts';
import { type Route, route } from '../route.ts';
import { count, date, list, moment, named, object, oneOf, shortText, stream, type z } from '../shapes.ts';

const RowsPoint = named(
  'RowsPoint',
  object({ at: moment, read: count, new: count, changed: count, quarantined: count, runs: count, failed: count }),
);

const Rows = named(
  'Rows',
  object({
    per: oneOf(['hour', 'day']),
    from: moment,
    to: moment,
    series: list(object({ source: shortText, stream, points: list(RowsPoint) })).describe(
      'hours and days without a run have no point',
    ),
  }),
);

export type RowsPoint = z.infer<typeof RowsPoint>;
export type Rows = z.infer<typeof Rows>;

const RowsQuery = object({ from: date, to: date, source: shortText, stream })
  .partial()
  .extend({ per: oneOf(['hour', 'day']).default('hour') });

export function rowsRoute({ state }: Pick<ControlDeps, 'state'>): Route {
  const read = createRowReader(state);
  return route({
    method: 'GET',
    path: '/api/rows',
    summary: 'Rows by the hour or day in which runs brought them. Unless told: the last 48 hours, or 30 days.',
    role: 'read',
    query: RowsQuery,
    answer: Rows,
    handle: ({ query }) => readRows(read, query),
  });
}

const HOUR_MS = 3_600_000;
/** A picture has no more columns than this. */
const MOST_POINTS = 1100;

async function readRows(read: RowReader, query: z.infer<typeof RowsQuery>): Promise<Rows> {
  const { per } = query;
  const step = per === 'day' ? DAY_MS : HOUR_MS;
  const now = Date.now();
  const usual = { start: floor(now, step) - (per === 'day' ? 29 : 47) * step, end: now };
  const asked = chooseWindow(query, usual, now);
  const window = { start: floor(asked.start, step), end: asked.end };
  if ((window.end - window.start) / step > MOST_POINTS)
    throw new HttpError(409, `that is more than ${MOST_POINTS} ${per}s`, { next: 'ask for fewer, or for days' });
  const { source: onlySource, stream: onlyStream } = query;
  const found = (await read(per, window)).filter((one) => isOr(onlySource, one.source) && isOr(onlyStream, one.stream));
  const series = new Map<string, Rows['series'][number]>();
  for (const { source, stream, at, ...figures } of found) {
    const key = `${source}/${stream}`;
    const one = series.get(key) ?? { source, stream, points: [] };
    one.points.push({ at: at.toISOString(), ...figures });
    series.set(key, one);
  }
  const inOrder = [...series.values()].sort((a, b) => (`${a.source}/${a.stream}` < `${b.source}/${b.stream}` ? -1 : 1));
  return { per, from: toIso(window.start), to: toIso(window.end), series: inOrder };
}

const isOr = (wanted: string | undefined, is: string): boolean => wanted === undefined || wanted === is;
const floor = (at: Instant, step: number): Instant => Math.floor(at / step) * step;

interface Found extends Omit<RowsPoint, 'at'> {
  source: string;
  stream: StreamName;
  at: Date;
}

type RowReader = (per: Rows['per'], window: Window) => Promise<Found[]>;

/** After so long every run of a day has ended, and its figures never change again. */
const SETTLED_MS = 2 * DAY_MS;

/** Days that are settled are counted once: a month of runs is half a million rows, and the page asks whenever one ends. */
function createRowReader(state: Queryable): RowReader {
  const settled = new Map<Instant, Found[]>();
  const query = (per: Rows['per'], window: Window): Promise<Found[]> => state.query<Found>(selectRows(per, window));
  return async (per, window) => {
    if (per === 'hour') return query(per, window);
    let known = window.start;
    while (settled.has(known) && known + DAY_MS <= window.end) known += DAY_MS;
    const fresh = await query(per, { start: known, end: window.end });
    for (let day = known; day + DAY_MS <= Math.min(window.end, Date.now() - SETTLED_MS); day += DAY_MS)
      settled.set(
        day,
        fresh.filter(({ at }) => at.getTime() === day),
      );
    const days = Array.from({ length: (known - window.start) / DAY_MS }, (_, i) => window.start + i * DAY_MS);
    return [...days.flatMap((day) => settled.get(day) ?? []), ...fresh];
  };
}

/** By when a run began, which there is an index for: a run that passes midnight counts for the day before. */
const selectRows = (per: Rows['per'], { start, end }: Window): Sql => ({
  text: `
    select source, stream, date_trunc($1, started_at, 'UTC') as at, count(*) as runs,
      count(*) filter (where state not in ('done', 'running')) as failed,
      sum(rows_read)::bigint as read, sum(rows_new)::bigint as new, sum(rows_changed)::bigint as changed,
      sum(rows_quarantined)::bigint as quarantined
    from tributary.runs where started_at >= $2 and started_at < $3
    group by source, stream, at order by source, stream, at`,
  values: [per, toIso(start), toIso(end)],
});
