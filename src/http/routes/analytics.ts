import type { Queryable } from '../../cursor/database/index.ts';
import { quoteIdent, type Sql, sql } from '../../cursor/database/sql.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { STREAM_NAMES, type StreamName } from '../../model/streams.ts';
import { DAY_MS, HOUR_MS, startOfDay, type Window } from '../../model/window.ts';
import { currencyOf, decimalsOf } from '../../sinks/views/money.ts';
import { count, date, HttpError, limit, listOf, moment, named, shortText, stream, z } from '../answers.ts';
import { type ControlDeps, chooseWindow, isOr } from '../dependencies.ts';
import { type Route, route } from '../route.ts';

const TopLink = z.strictObject({
  source: z.string(),
  linkId: z.string(),
  shortLink: z.string().nullable().describe('null: only the id of the link is known'),
  clicks: count,
  leads: count,
  sales: count,
  revenue: listOf({
    currency: z.string().nullable().describe('in lower case; null: the service sent none'),
    amount: z.number().describe('in the currency itself: dollars, yen'),
  }).describe('value of the sales, currency by currency'),
});
const TopLinks = named('TopLinks', {
  by: stream,
  from: moment,
  to: moment,
  sink: z.string().nullable().describe('the sink that was queried; null: the config has no Postgres sink'),
  links: z.array(TopLink),
});
export type TopLink = z.infer<typeof TopLink>;
export type TopLinks = z.infer<typeof TopLinks>;

const TopQuery = z
  .strictObject({ from: date, to: date, source: shortText })
  .partial()
  .extend({
    by: stream.default('clicks'),
    limit: limit(10),
    q: shortText
      .min(1)
      .optional()
      .describe('only links with this id, or this text in their short link; with or without events'),
  });

async function readTop(warehouse: ControlDeps['warehouse'], query: z.infer<typeof TopQuery>): Promise<TopLinks> {
  const now = Date.now();
  const window = chooseWindow(query, { start: startOfDay(now) - 29 * DAY_MS, end: now }, now);
  const { by } = query;
  const head = { by, from: toIso(window.start), to: toIso(window.end) };
  if (!warehouse) return { ...head, sink: null, links: [] };
  const { name, db, schema } = warehouse;
  const tables = await db.query<{ table: string }>(
    sql`select table_name as table from information_schema.tables where table_schema = ${schema}`,
  );
  const has = new Set(tables.map(({ table }) => table));
  // Nothing has been synced yet: the table is created with the first rows.
  if (!has.has(by) || !has.has('links')) return { ...head, sink: name, links: [] };
  const present = STREAM_NAMES.filter((stream) => has.has(stream));
  const links = await db.query<TopLink>(selectTop(schema, present, { ...query, window }));
  return {
    ...head,
    sink: name,
    links: links.map((link) => ({ ...link, revenue: link.revenue.map(toMajor) })),
  };
}

const toMajor = ({ currency, amount }: TopLink['revenue'][number]): TopLink['revenue'][number] => ({
  currency,
  amount: amount / 10 ** decimalsOf(currency),
});

/** First the top links by one figure, then the other figures of those few: each table is scanned once, by its time index. */
function selectTop(
  schema: string,
  present: readonly StreamName[],
  { by, window, source, limit, q }: z.infer<typeof TopQuery> & { window: Window },
): Sql {
  const table = (name: string): string => `${quoteIdent(schema)}.${quoteIdent(name)}`;
  const inWindow = `"timestamp" >= $1 and "timestamp" < $2 and _missing_since is null and ($3::text is null or _source = $3)`;
  const ofBest = `${inWindow} and (_source, link_id) in (select _source, link_id from best)`;
  const most = `
    select _source, link_id, count(*) as n from ${table(by)} where ${inWindow} and link_id is not null
    group by 1, 2 order by n desc, 1, 2 limit $4`;
  const named = `
    select _source, link_id from ${table('links')} where ($3::text is null or _source = $3)
      and (link_id = $5 or strpos(lower(link_domain || '/' || link_key), lower($5)) > 0) order by 1, 2 limit $4`;
  const countOf = (stream: StreamName): string =>
    present.includes(stream)
      ? `left join (select _source, link_id, count(*) as n from ${table(stream)} where ${ofBest} group by 1, 2) ${stream}
           using (_source, link_id)`
      : `left join (select null::bigint as n) ${stream} on true`;
  // Amounts of two currencies are never added.
  const revenue = present.includes('sales')
    ? `left join (
         select _source, link_id, json_agg(json_build_object('currency', currency, 'amount', amount) order by currency) as amounts
         from (select _source, link_id, ${currencyOf('sale_currency')} as currency, sum(sale_amount)::float8 as amount
           from ${table('sales')} where ${ofBest} group by 1, 2, 3) by_currency
         where amount is not null group by 1, 2) revenue using (_source, link_id)`
    : 'left join (select null::json as amounts) revenue on true';
  return {
    text: `
      with best as materialized (${q === undefined ? most : named})
      select best._source as source, best.link_id as "linkId", l.link_domain || '/' || l.link_key as "shortLink",
        coalesce(clicks.n, 0) as clicks, coalesce(leads.n, 0) as leads, coalesce(sales.n, 0) as sales,
        coalesce(revenue.amounts, '[]') as revenue
      from best ${STREAM_NAMES.map(countOf).join('\n')} ${revenue}
      left join ${table('links')} l using (_source, link_id)
      order by ${by}.n desc nulls last, 1, 2`,
    values: [toIso(window.start), toIso(window.end), source ?? null, limit, ...(q === undefined ? [] : [q])],
  };
}

const RowsPoint = named('RowsPoint', {
  at: moment,
  read: count,
  new: count,
  firstSync: count.describe('the new rows that came from a first sync'),
  changed: count,
  quarantined: count,
  runs: count,
  failed: count,
});

const Rows = named('Rows', {
  per: z.enum(['hour', 'day']),
  from: moment,
  to: moment,
  series: listOf({ source: shortText, stream, points: z.array(RowsPoint) }).describe(
    'hours and days without a run have no point',
  ),
});

type RowsPoint = z.infer<typeof RowsPoint>;
export type Rows = z.infer<typeof Rows>;

const RowsQuery = z
  .strictObject({ from: date, to: date, source: shortText, stream })
  .partial()
  .extend({ per: z.enum(['hour', 'day']).default('hour') });

export function analyticsRoutes({ state, warehouse }: Pick<ControlDeps, 'state' | 'warehouse'>): Route[] {
  const read = createRowReader(state);
  return [
    route('GET /api/links/top', {
      summary:
        'The links with the most clicks, leads or sales, counted in the synced tables; of the last 30 days by default.',
      query: TopQuery,
      answer: TopLinks,
      handle: ({ query }) => readTop(warehouse, query),
    }),
    route('GET /api/rows', {
      summary: 'Rows by the hour or day of the run that wrote them. Default: the last 48 hours, or 30 days.',
      query: RowsQuery,
      answer: Rows,
      handle: ({ query }) => readRows(read, query),
    }),
  ];
}

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
  const inOrder = [...series].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  return { per, from: toIso(window.start), to: toIso(window.end), series: inOrder };
}

const floor = (at: Instant, step: number): Instant => Math.floor(at / step) * step;

interface Found extends Omit<RowsPoint, 'at'> {
  source: string;
  stream: StreamName;
  at: Date;
}

type RowReader = (per: Rows['per'], window: Window) => Promise<Found[]>;

/** After this long every run of a day has ended, and its figures are final. */
const SETTLED_MS = 2 * DAY_MS;

/** Caches final days: a month of runs is half a million rows, and the page reloads them whenever a run ends. */
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

/** Counts a run by its start, which is indexed, even if it ends on the next day. */
const selectRows = (per: Rows['per'], { start, end }: Window): Sql => sql`
  with caught_up as (
    select k.source, k.stream, f.caught_up_at from (select distinct source, stream from tributary.cursors) k cross join lateral (
      select finished_at as caught_up_at from tributary.runs
      where (source, stream, state) = (k.source, k.stream, 'done') and kind in ('sync', 're-sweep')
      order by started_at limit 1
    ) f
  )
  select source, stream, date_trunc(${per}, started_at, 'UTC') as at, count(*) as runs,
    count(*) filter (where state not in ('done', 'running')) as failed,
    sum(rows_read)::bigint as read, sum(rows_new)::bigint as new, sum(rows_changed)::bigint as changed,
    sum(rows_quarantined)::bigint as quarantined,
    coalesce(sum(rows_new) filter (where kind = 'sync' and started_at < coalesce(caught_up_at, 'infinity')), 0)::bigint as "firstSync"
  from tributary.runs left join caught_up using (source, stream) where started_at >= ${toIso(start)} and started_at < ${toIso(end)}
  group by source, stream, at order by source, stream, at`;
