import { chooseFeeds, knownFeeds } from '../../cursor/cursors.ts';
import type { Queryable } from '../../cursor/database/index.ts';
import { instantOf, isoOf, isoOrNull, sql } from '../../cursor/database/sql.ts';
import { type Feed, readLedger } from '../../cursor/ledger.ts';
import { type Instant, parseInstant, toIso } from '../../model/instant.ts';
import type { StreamName } from '../../model/streams.ts';
import {
  type CoverageSpan,
  coverageSpans,
  DAY_MS,
  type Entry,
  holds,
  startOfDay,
  type Window,
} from '../../model/window.ts';
import { groupBy } from '../../sinks/files/group-by.ts';
import { count, date, day, HttpError, listOf, moment, named, of, shortText, stream, z } from '../answers.ts';
import { type ControlDeps, chooseWindow, endOfDays, isoDay } from '../dependencies.ts';
import { type Route, route } from '../route.ts';

const feed = { ...of, sink: z.string() };

/**
 * Consecutive days of one state. A day's state is the worst of its windows': gap (never read, though later ones were), uncertified
 * (read, not proven), quarantined (complete, but records were set aside), open (not reached yet), certified.
 */
const WORST_FIRST = ['gap', 'uncertified', 'quarantined', 'open', 'certified'] as const;

const DayRun = named('DayRun', { date: day, count, state: z.enum(WORST_FIRST) });
export type DayRun = z.infer<typeof DayRun>;
export type DayState = DayRun['state'];

const Coverage = named('Coverage', {
  from: day,
  to: day.describe('the day after the last'),
  feeds: listOf({
    ...feed,
    since: moment,
    days: z.array(DayRun).describe('in order; days before `since` that were never requested are left out'),
    rows: listOf({ date: day, rows: count.nullable() }).describe(
      'rows per day in the sink by the ledger, only if `source` and `stream` are given; null: part of a window of several days',
    ),
  }),
});

const WindowDetail = named('WindowDetail', {
  start: moment,
  end: moment,
  state: z.enum(['certified', 'open', 'uncertified', 'gap']),
  rows: count.nullable().describe('this and the following fields are null for windows that were not read'),
  readAt: moment.nullable(),
  provenAt: moment.nullable(),
  runId: z.string().nullable(),
  tries: count.nullable().describe('runs in a row that could not prove it'),
  note: z.string().nullable(),
});

const CoverageWindows = named('CoverageWindows', {
  ...feed,
  from: moment,
  to: moment,
  windows: z.array(WindowDetail).describe('in order, without holes'),
  quarantined: z.array(count).describe('ids of records of these days that were set aside'),
});

const EventRows = named('EventRows', {
  from: moment,
  to: moment,
  series: listOf({ source: shortText, stream, points: listOf({ at: moment, rows: count }) }).describe(
    'days without events have no point',
  ),
});
export type EventRows = z.infer<typeof EventRows>;

export type Coverage = z.infer<typeof Coverage>;
export type FeedCoverage = Coverage['feeds'][number];
export type WindowDetail = z.infer<typeof WindowDetail>;
export type CoverageWindows = z.infer<typeof CoverageWindows>;

const WindowsQuery = z.strictObject({ source: shortText, stream, sink: shortText, from: date, to: date });
const CoverageQuery = WindowsQuery.partial();

export const coverageRoutes = ({ state }: Pick<ControlDeps, 'state'>): Route[] => [
  route('GET /api/coverage', {
    summary: 'What is proven complete in each sink, by stream and day.',
    query: CoverageQuery,
    answer: Coverage,
    handle: ({ query }) => readCoverage(state, query),
  }),
  route('GET /api/coverage/windows', {
    summary: 'The windows of at most 31 days, with the state of each.',
    query: WindowsQuery,
    answer: CoverageWindows,
    handle: ({ query }) => readWindows(state, query),
  }),
  route('GET /api/rows/events', {
    summary: 'Rows by the UTC day of their events, by the ledger. Default: the last 30 days.',
    query: z.strictObject({ from: date, to: date, source: shortText, stream }).partial(),
    answer: EventRows,
    async handle({ query }) {
      const now = Date.now();
      const { start, end } = chooseWindow(query, { start: startOfDay(now) - 29 * DAY_MS, end: now }, now);
      const window = { start: startOfDay(start), end };
      if (end - window.start > MOST_CHART_DAYS * DAY_MS)
        throw new HttpError(409, `that is more than ${MOST_CHART_DAYS} days`, { next: 'ask for fewer' });
      return { from: toIso(window.start), to: toIso(end), series: await readEventRows(state, query, window) };
    },
  }),
];

const MOST_CHART_DAYS = 1100;

async function readCoverage(state: Queryable, query: z.infer<typeof CoverageQuery>): Promise<Coverage> {
  const now = Date.now();
  const { source, stream, sink } = query;
  const feeds = chooseFeeds(await knownFeeds(state), { source, streams: stream ? [stream] : [], sink });
  const ledgers = await readLedgers(state);
  const begins = feeds.flatMap((one) => [one.since, ledgers.get(keyOf(one))?.[0]?.start ?? one.since]);
  const begin = Math.min(now - DAY_MS, ...begins);
  const asked = chooseWindow(query, { start: begin, end: now }, now);
  const window = { start: startOfDay(asked.start), end: endOfDays(asked.end) };
  const setAside = await readSetAside(state);
  const rows = source !== undefined && stream !== undefined ? await readDayRows(state, { source, stream }, window) : [];
  return {
    from: isoDay(window.start),
    to: toIso(window.end).slice(0, 10),
    feeds: feeds.map(({ since, isFirstSync, ...one }) => {
      const { source, stream, sink } = one;
      const entries = ledgers.get(keyOf(one)) ?? [];
      const spans = [
        ...historyBefore(entries, since),
        ...coverageSpans(entries, { start: since, end: Math.max(since, now) }, { isFirstSync }),
      ];
      const days = new Set(setAside.filter((record) => isOf(record, one)).map(({ at }) => startOfDay(at)));
      return {
        ...{ source, stream, sink, since: toIso(since) },
        days: dayRuns(within(spans, window), days),
        rows: rows.filter((row) => row.sink === sink).map(({ date, rows }) => ({ date, rows })),
      };
    }),
  };
}

/** A month of a stream that is polled every minute is at most a few hundred windows, because adjacent windows are joined. */
const MOST_DAYS = 31;

async function readWindows(state: Queryable, query: z.infer<typeof WindowsQuery>): Promise<CoverageWindows> {
  const now = Date.now();
  const window = chooseWindow(query, undefined, now);
  if (window.end - window.start > MOST_DAYS * DAY_MS)
    throw new HttpError(409, `at most ${MOST_DAYS} days at a time`, { next: 'ask for fewer days' });
  const { source, stream, sink } = query;
  const [known] = chooseFeeds(await knownFeeds(state), { source, streams: [stream], sink });
  if (!known) throw new HttpError(404, 'nothing of this stream has been written to this sink');
  // A backfill may have read ranges before the beginning.
  const entries = await readLedger(state, known, Math.min(known.since, window.start));
  const spans = coverageSpans(entries, { start: known.since, end: Math.max(known.since, now) }, known);
  const read = entries.filter((entry) => entry.end > window.start && entry.start < window.end);
  const unread = within(spans, window).filter((span) => span.state === 'gap' || span.state === 'open');
  const setAside = await readSetAside(state);
  return {
    ...{ source: known.source, stream: known.stream, sink: known.sink },
    from: toIso(window.start),
    to: toIso(window.end),
    windows: [...read.map(toDetail), ...unread.map(toUnread)].sort((a, b) => (a.start < b.start ? -1 : 1)),
    quarantined: setAside.filter((record) => isOf(record, known) && holds(window, record.at)).map(({ id }) => id),
  };
}

/**
 * The whole ledger, with adjacent windows of the same state joined: three years of fifteen streams are some ten thousand windows, but a
 * few dozen rows. The database joins them, so that this process is free for its runs.
 */
async function readLedgers(state: Queryable) {
  const rows = await state.query<Feed & Window & { certified: boolean }>(sql`
    with windows as (
      select *, state = lag(state) over feed and start_at = lag(end_at) over feed as continues
      from tributary.windows window feed as (partition by source, stream, sink order by start_at)
    ), numbered as (
      select *, count(*) filter (where continues is not true) over (partition by source, stream, sink order by start_at) as number
      from windows
    )
    select source, stream, sink, state = 'certified' as certified,
      ${instantOf('min(start_at)')} as start, ${instantOf('max(end_at)')} as "end"
    from numbered group by source, stream, sink, number, state order by min(start_at)`);
  return groupBy(rows, keyOf);
}

/**
 * The records set aside, with the times of their events. A record is text, because jsonb may refuse it; its first timestamp is the
 * event's own in every format of the service seen so far. A record without one belongs to no day.
 */
async function readSetAside(state: Queryable) {
  const rows = await state.query<{ id: number; source: string; stream: StreamName; said: string | null }>(sql`
    select id, source, stream, substring(left(record, 20000) from '"timestamp":"?([^",}]{4,60})') as said
    from tributary.quarantine order by id desc limit 10000`);
  return rows.flatMap(({ said, ...row }) => {
    const at = said === null ? undefined : parseInstant(said);
    return at === undefined ? [] : [{ ...row, at }];
  });
}

/** Backfills before the stream's beginning. Time between them and the beginning was never requested, so it is no gap. */
const historyBefore = (entries: ReadonlyArray<Window & { certified: boolean }>, since: Instant): CoverageSpan[] =>
  entries
    .filter(({ start }) => start < since)
    .map(({ start, end, certified }) => ({
      start,
      end: Math.min(end, since),
      state: certified ? 'certified' : 'uncertified',
    }));

const within = (spans: readonly CoverageSpan[], { start, end }: Window): CoverageSpan[] =>
  spans
    .map((span) => ({ ...span, start: Math.max(span.start, start), end: Math.min(span.end, end) }))
    .filter((span) => span.start < span.end);

const toDetail = (entry: Entry): WindowDetail => ({
  start: toIso(entry.start),
  end: toIso(entry.end),
  state: entry.certified ? 'certified' : 'uncertified',
  rows: entry.rows,
  readAt: toIso(entry.readAt),
  provenAt: isoOrNull(entry.provenAt),
  runId: entry.runId,
  tries: entry.tries ?? null,
  note: entry.note ?? null,
});

const toUnread = ({ start, end, state }: CoverageSpan): WindowDetail => ({
  ...{ start: toIso(start), end: toIso(end), state },
  ...{ rows: null, readAt: null, provenAt: null, runId: null, tries: null, note: null },
});

const isOf = (a: { source: string; stream: string }, b: { source: string; stream: string }): boolean =>
  a.source === b.source && a.stream === b.stream;
const keyOf = ({ source, stream, sink }: Feed): string => [source, stream, sink].join('/');

/** The days that spans touch, with adjacent equal days joined. `setAside` are the days that have records in quarantine. */
export function dayRuns(spans: readonly CoverageSpan[], setAside: ReadonlySet<Instant>): DayRun[] {
  const days = new Map<Instant, DayState>();
  for (const { start, end, state } of spans)
    for (let day = startOfDay(start); day < end; day += DAY_MS)
      days.set(day, worse(days.get(day) ?? (setAside.has(day) ? 'quarantined' : 'certified'), state));
  const runs: Array<{ from: Instant; to: Instant; state: DayState }> = [];
  for (const [day, state] of days) {
    const run = runs.at(-1);
    if (run?.state === state && run.to === day) run.to = day + DAY_MS;
    else runs.push({ from: day, to: day + DAY_MS, state });
  }
  return runs.map(({ from, to, state }) => ({ date: isoDay(from), count: (to - from) / DAY_MS, state }));
}

const worse = (a: DayState, b: DayState): DayState => (WORST_FIRST.indexOf(a) < WORST_FIRST.indexOf(b) ? a : b);

/** From the ledger: counting the rows themselves would read millions. The rows of a window of several days are not known by day. */
const readDayRows = (state: Queryable, { source, stream }: Omit<Feed, 'sink'>, { start, end }: Window) =>
  state.query<{ sink: string; date: string; rows: number | null }>(sql`
    select w.sink, to_char(d.day at time zone 'UTC', 'YYYY-MM-DD') as date,
      case when bool_and(w.start_at >= d.day and w.end_at <= d.day + interval '1 day') then sum(w.rows)::bigint end as rows
    from tributary.windows w
    cross join lateral generate_series(
      greatest(date_trunc('day', w.start_at, 'UTC'), ${toIso(start)}),
      least(w.end_at - interval '1 microsecond', ${toIso(end)}), interval '1 day'
    ) d (day)
    where w.source = ${source} and w.stream = ${stream} and w.rows > 0 and w.end_at > ${toIso(start)} and w.start_at < ${toIso(end)}
    group by w.sink, d.day order by d.day`);

/** Events count once, whatever the number of sinks. A window of several days counts for its first: its rows are not known by day. */
function readEventRows(
  state: Queryable,
  { source, stream: name }: { source?: string | undefined; stream?: string | undefined },
  { start, end }: Window,
): Promise<EventRows['series']> {
  return state.query<EventRows['series'][number]>(sql`
    select source, stream, json_agg(json_build_object('at', ${isoOf('at')}, 'rows', rows) order by at) as points from (
      select source, stream, at, max(rows)::bigint as rows from (
        select source, stream, sink, date_trunc('day', start_at, 'UTC') as at, sum(rows) as rows from tributary.windows
        where rows > 0 and start_at >= ${toIso(start)} and start_at < ${toIso(end)}
          and (${source}::text is null or source = ${source}) and (${name}::text is null or stream = ${name})
        group by 1, 2, 3, 4
      ) by_sink group by 1, 2, 3
    ) by_day group by 1, 2 order by 1, 2`);
}
