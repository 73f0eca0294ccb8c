import { nameIn, quoteIdent, quoteLiteral } from '../cursor/database/sql.ts';
import {
  ENTITIES,
  type Entity,
  entitiesOf,
  entityBookkeeping,
  LINKS,
  STREAM_NAMES,
  STREAMS,
} from '../model/streams.ts';
import { DUCKDB_TYPES } from './table-columns.ts';
import { dailyViews } from './views/daily-views.ts';
import { eventsView } from './views/events-view.ts';
import { funnelViews } from './views/funnel-views.ts';
import type { Dialect } from './views/view.ts';

/** DuckDB views over the files of a lake, with the names of the tables and views in Postgres. */
export function duckdbViews(schema: string, lake: string, isListed: boolean): string {
  const view = (name: string, query: string): string =>
    `create or replace view ${nameIn(schema, name)} as ${query.trim()};`;
  const dialect = dialectOf(schema);
  return [
    '-- Views over the Parquet files of a lake, for DuckDB 1.2 and later: duckdb lake.duckdb < views.sql',
    '-- Every stream needs a file: DuckDB makes no view over a folder that is empty.',
    `create schema if not exists ${quoteIdent(schema)};`,
    ...STREAM_NAMES.map((name) =>
      view(
        name,
        `select * from read_parquet(${quoteLiteral(`${lake}/${name}/**/*.parquet`)}, union_by_name = true, hive_partitioning = true)`,
      ),
    ),
    ...ENTITIES.map((entity) =>
      view(entity.name, isListed && entity === LINKS ? listed(dialect, lake) : lastSeen(dialect, entity)),
    ),
    view('coverage', coverage(lake)),
    view('complete_days', completeDays(dialect)),
    ...[eventsView(dialect), ...dailyViews(dialect), ...funnelViews(dialect)].map(({ name, query }) =>
      view(name, query),
    ),
  ].join('\n\n');
}

const dialectOf = (schema: string): Dialect => ({
  table: (name) => nameIn(schema, name),
  types: DUCKDB_TYPES,
  // From the folder's name, so that DuckDB skips days without opening their files.
  utcDate: (alias) => `${alias}.date`,
  utcDay: (instant) => `(${instant} at time zone 'UTC')::date`,
  isComplete: (source, date) => ({
    join: `left join (
    select k.source, k.date from ${nameIn(schema, 'complete_days')} k join ${nameIn(schema, 'coverage')} c on c.source = k.source and c.stream <> 'links'
    group by k.source, k.date having count(distinct k.stream) = count(distinct c.stream)
  ) c on c.source = ${source} and c.date = ${date}`,
    is: 'c.date is not null',
  }),
});

/** Without a listing, a lake has links and customers only in events: the newest event counts, placeholders do not (`Entity.knowledge`). */
function lastSeen({ table }: Dialect, entity: Entity): string {
  const { columns, key, knowledge } = entity;
  const names = columns.map(({ name }) => quoteIdent(name)).join(', ');
  const known = knowledge.map((name) => `${quoteIdent(name)} is not null`).join(' or ');
  const listed = entityBookkeeping(entity)
    .filter(({ name }) => name !== '_observed_at')
    .map(({ name }) => `, null::timestamptz as ${name}`)
    .join('');
  const streams = STREAM_NAMES.filter((name) => entitiesOf(STREAMS[name]).some((one) => one.key === key));
  const rows = streams.map(
    (name) =>
      `select _source, ${names}, _synced_at as _observed_at${listed}, "timestamp" as seen_at from ${table(name)} where ${quoteIdent(key)} is not null and (${known})`,
  );
  return `select * exclude (seen_at) from (
  ${rows.join('\n  union all ')}
) qualify row_number() over (partition by _source, ${quoteIdent(key)} order by _observed_at desc, seen_at desc) = 1`;
}

/** The last listing of all links, and links created since, as their events show them. */
const listed = (dialect: Dialect, lake: string): string => `with listed as (
  select * from read_parquet(${quoteLiteral(`${lake}/${LINKS.name}/*.parquet`)}, union_by_name = true)
)
select * from listed
union all by name
select s.* from (
  ${lastSeen(dialect, LINKS)}
) s where not exists (select 1 from listed l where l._source = s._source and l.link_id = s.link_id)`;

const coverage = (lake: string): string => `
select source, stream, complete_through, newest_seen, now() - complete_through as lag, updated_at, since, filters, set_aside, also_complete
from read_json(${quoteLiteral(`${lake}/_coverage.json`)}, columns = {
  source: 'varchar', stream: 'varchar', complete_through: 'timestamptz', newest_seen: 'timestamptz', updated_at: 'timestamptz',
  since: 'timestamptz', filters: 'varchar', set_aside: 'bigint', also_complete: 'struct("start" timestamptz, "end" timestamptz)[]'})`;

/** Ranges never overlap but may meet within a day: a day is complete if they cover all of it. */
const completeDays = ({ table }: Dialect): string => `
with ranges as (
  select source, stream, unnest(list_append(also_complete, {'start': since, 'end': coalesce(complete_through, since)})) as r from ${table('coverage')} where stream <> 'links'
),
days as (
  select source, stream, unnest(generate_series(
    min(r.start at time zone 'UTC')::date, max(r.end at time zone 'UTC')::date, interval '1 day'))::date as date
  from ranges group by source, stream
)
select d.source, d.stream, d.date, coalesce(any_value(n.rows), 0)::bigint as rows
from days d
join ranges r on r.source = d.source and r.stream = d.stream
left join (
  ${STREAM_NAMES.map((name) => `select _source as source, '${name}' as stream, date, count(*) as rows from ${table(name)} group by all`).join('\n  union all ')}
) n on n.source = d.source and n.stream = d.stream and n.date = d.date
group by d.source, d.stream, d.date
having sum(greatest(0, epoch_us(least(r.r.end, (d.date + 1)::timestamp at time zone 'UTC')) - epoch_us(greatest(r.r.start, d.date::timestamp at time zone 'UTC'))))
  = 86400000000`;
