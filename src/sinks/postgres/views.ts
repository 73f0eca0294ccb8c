import { nameIn, quoteLiteral } from '../../cursor/database/sql.ts';
import { COVERAGE } from '../../cursor/ledger.ts';
import { POSTGRES_TYPES } from '../table-columns.ts';
import { completeDays, completeRanges, dayRange } from '../views/complete-days.ts';
import { dailyViews } from '../views/daily-views.ts';
import { eventsView } from '../views/events-view.ts';
import { funnelViews } from '../views/funnel-views.ts';
import { utcDate } from '../views/postgres-indexes.ts';
import type { Dialect, View } from '../views/view.ts';
import { columnsCopy, cursorCopy, daysTable } from './beside.ts';

export interface Viewed {
  schema: string;
  sink: string;
  /** Whether the state is in this database. Otherwise the views read copies beside the data. */
  isStateHere: boolean;
}

/** All views of the sink. Each reads only tables, so that one can be replaced without the others. */
export function viewsOf(viewed: Viewed): View[] {
  const dialect = dialectOf(viewed);
  return [
    coverageView(viewed),
    completeDaysView(viewed),
    newColumnsView(viewed),
    eventsView(dialect),
    ...dailyViews(dialect),
    ...funnelViews(dialect),
  ];
}

const dialectOf = (viewed: Viewed): Dialect => ({
  table: (name) => nameIn(viewed.schema, name),
  types: POSTGRES_TYPES,
  utcDate,
  utcDay: (instant) => `(${instant} at time zone 'UTC')::date`,
  isComplete: (source, date) => ({
    join: `left join (
    select c.source, range_intersect_agg(${completeRanges('c.also_complete')}) as ranges
    from (${coverageQuery(viewed)}) c where c.stream <> 'links' group by c.source
  ) c on c.source = ${source}`,
    is: `coalesce(${dayRange(date)} <@ c.ranges, false)`,
  }),
  completeAt: (stream, alias) => ({
    join: `left join ${nameIn(viewed.schema, daysTable.name)} k on (k.source, k.stream, k.date) = (${alias}._source, ${quoteLiteral(stream)}, ${utcDate(alias)})`,
    at: 'k.complete_at',
  }),
});

function coverageQuery({ schema, sink, isStateHere }: Viewed): string {
  const { filters, setAside, alsoComplete } = COVERAGE;
  const promise = isStateHere
    ? `since, ${filters} as filters, ${setAside} as set_aside, ${alsoComplete} as also_complete from tributary.cursors c where sink = ${quoteLiteral(sink)}`
    : `since, filters, set_aside, also_complete from ${nameIn(schema, cursorCopy.name)}`;
  return `select source, stream, complete_through, newest_seen, now() - complete_through as lag, updated_at, ${promise}`;
}

const coverageView = (viewed: Viewed): View => ({
  name: 'coverage',
  doc: 'What is complete of each stream: from since to complete_through. Build reports on these two, not on the oldest and the newest row.',
  // A replaced view keeps its columns in their order, so new ones come last.
  columns: {
    source: 'Source, as named in the config.',
    stream: 'clicks, leads or sales; links: the listing of all links, complete as of complete_through.',
    complete_through:
      'Every event from since up to here (exclusive) that the filters let through is in the table, except set_aside records that are kept in tributary.quarantine. Null: nothing is proven yet.',
    newest_seen: 'Time of the newest event that the filters let through so far, proven or not.',
    lag: 'From complete_through to now.',
    updated_at: 'When the stream was last committed.',
    since: 'Where completeness is counted from. Of older events only those in also_complete are promised.',
    filters: 'What the stream is narrowed to, as in country=US,CA&trigger=-qr. Null: every event.',
    set_aside: 'Records of the stream that could not be used and are kept in tributary.quarantine.',
    also_complete: 'Further ranges that are complete in the same sense: backfilled before since, or read beyond a gap.',
  },
  reads: ['coverage'],
  query: coverageQuery(viewed),
});

function completeDaysView({ schema, sink, isStateHere }: Viewed): View {
  const days = nameIn(schema, daysTable.name);
  return {
    name: 'complete_days',
    doc: 'The UTC days of each stream that are complete from midnight to midnight.',
    columns: {
      source: 'Source, as named in the config.',
      stream: 'clicks, leads or sales.',
      date: 'Day, in UTC.',
      rows: 'Rows that the table has of that day, those included that the service no longer shows. Null: counted for several days together.',
      complete_at: 'When the day was first complete. Events that came later are late.',
    },
    reads: ['coverage'],
    query: isStateHere
      ? `select d.source, d.stream, d.date, d.rows, k.complete_at from (${completeDays(`c.sink = ${quoteLiteral(sink)} and c.stream <> 'links'`)}) d
  left join ${days} k on (k.source, k.stream, k.date) = (d.source, d.stream, d.date)`
      : `select k.source, k.stream, k.date, k.rows, k.complete_at from ${days} k
  join ${nameIn(schema, cursorCopy.name)} c on (c.source, c.stream) = (k.source, k.stream)
  where ${dayRange('k.date')} <@ (${completeRanges('c.also_complete')})`,
  };
}

function newColumnsView({ schema, isStateHere }: Viewed): View {
  const type = (kind: string): string =>
    `case ${kind} ${Object.entries(POSTGRES_TYPES)
      .map(([name, sql]) => `when ${quoteLiteral(name)} then ${quoteLiteral(sql)}`)
      .join(' ')} end`;
  const from = isStateHere ? 'tributary.columns' : nameIn(schema, columnsCopy.name);
  return {
    name: 'new_columns',
    doc: 'Columns that came later: fields that the service sends and nobody declared, and every widening of one. Newest first.',
    columns: {
      changed_at: 'When the column came, or was widened.',
      stream: 'The table: clicks, leads or sales.',
      column_name: 'The column.',
      type: 'Its type from then on.',
      previous_type: 'Its type before; null: it is new, and rows that are older have null.',
      field: 'Where the field is in the answers of the service.',
      source: 'The source that sent it first.',
    },
    reads: ['coverage'],
    query: `select n.changed_at, n.stream, n.name as column_name, ${type('n.kind')} as type, ${type('n.previous_kind')} as previous_type, n.path as field, n.source
  from ${from} n order by n.id desc`,
  };
}
