import { quoteIdent, type Sql } from '../../cursor/database/sql.ts';
import { toIso } from '../../model/instant.ts';
import { STREAM_NAMES, type StreamName } from '../../model/streams.ts';
import { DAY_MS, startOfDay, type Window } from '../../model/window.ts';
import { currencyOf, decimalsOf } from '../../sinks/postgres/views.ts';
import { chooseWindow } from '../choices.ts';
import type { ControlDeps } from '../dependencies.ts';
import { type Route, route } from '../route.ts';
import { count, date, limit, list, moment, named, object, orNull, shortText, stream, text, z } from '../shapes.ts';

const TopLink = object({
  source: text,
  linkId: text,
  shortLink: orNull(text).describe('null: nothing is known of the link but its id'),
  clicks: count,
  leads: count,
  sales: count,
  revenue: list(
    object({
      currency: orNull(text).describe('in lower case; null: the service named none'),
      amount: z.number().describe('in the currency itself: dollars, yen'),
    }),
  ).describe('value of the sales, currency by currency'),
});
const TopLinks = named(
  'TopLinks',
  object({
    by: stream,
    from: moment,
    to: moment,
    sink: orNull(text).describe('the one that was asked; null: none of the config has tables'),
    links: list(TopLink),
  }),
);
export type TopLink = z.infer<typeof TopLink>;
export type TopLinks = z.infer<typeof TopLinks>;

const TopQuery = object({ from: date, to: date, source: shortText })
  .partial()
  .extend({ by: stream.default('clicks'), limit: limit(10) });

export const linksRoute = (deps: Pick<ControlDeps, 'warehouse'>): Route =>
  route({
    method: 'GET',
    path: '/api/links/top',
    summary:
      'The links with the most clicks, leads or sales, counted in the synced tables; of the last 30 days unless told.',
    role: 'read',
    query: TopQuery,
    answer: TopLinks,
    handle: ({ query }) => readTop(deps, query),
  });

async function readTop(
  { warehouse }: Pick<ControlDeps, 'warehouse'>,
  query: z.infer<typeof TopQuery>,
): Promise<TopLinks> {
  const now = Date.now();
  const window = chooseWindow(query, { start: startOfDay(now) - 29 * DAY_MS, end: now }, now);
  const { by } = query;
  const head = { by, from: toIso(window.start), to: toIso(window.end) };
  if (!warehouse) return { ...head, sink: null, links: [] };
  const { name, db, schema } = warehouse;
  const tables = await db.query<{ table: string }>({
    text: 'select table_name as table from information_schema.tables where table_schema = $1',
    values: [schema],
  });
  const has = new Set(tables.map(({ table }) => table));
  // Nothing was synced of it yet: the table comes with the first rows.
  if (!has.has(by) || !has.has('links')) return { ...head, sink: name, links: [] };
  const present = STREAM_NAMES.filter((stream) => has.has(stream));
  const question = { by, window, source: query.source, limit: query.limit };
  const links = await db.query<TopLink>(selectTop(schema, present, question));
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

interface Question {
  by: StreamName;
  window: Window;
  source: string | undefined;
  limit: number;
}

/** The best by one figure first, then the other figures of those few: each table is gone through once, by its time. */
function selectTop(schema: string, present: readonly StreamName[], { by, window, source, limit }: Question): Sql {
  const table = (name: string): string => `${quoteIdent(schema)}.${quoteIdent(name)}`;
  const inWindow = `"timestamp" >= $1 and "timestamp" < $2 and _missing_since is null and ($3::text is null or _source = $3)`;
  const ofBest = `${inWindow} and (_source, link_id) in (select _source, link_id from best)`;
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
      with best as materialized (
        select _source, link_id, count(*) as n from ${table(by)} where ${inWindow} and link_id is not null
        group by 1, 2 order by n desc, 1, 2 limit $4
      )
      select best._source as source, best.link_id as "linkId", l.link_domain || '/' || l.link_key as "shortLink",
        coalesce(clicks.n, 0) as clicks, coalesce(leads.n, 0) as leads, coalesce(sales.n, 0) as sales,
        coalesce(revenue.amounts, '[]') as revenue
      from best ${STREAM_NAMES.map(countOf).join('\n')} ${revenue}
      left join ${table('links')} l using (_source, link_id)
      order by best.n desc, 1, 2`,
    values: [toIso(window.start), toIso(window.end), source ?? null, limit],
  };
}
