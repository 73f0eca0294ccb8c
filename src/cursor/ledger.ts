import { Certified } from '../extract/proof/certified.ts';
import { type Instant, toIso } from '../model/instant.ts';
import type { SyncName } from '../model/streams.ts';
import { completeThrough, type Entry, overlay, type Window } from '../model/window.ts';
import type { Queryable } from './database/index.ts';
import { defined, instantOf, isoOrNull, type Nulled, raw, type Sql, sql, storableText } from './database/sql.ts';
import { carryRows, countByDay, type Feed, ofFeed, recountRows, type SinkRows } from './holdings/window-rows.ts';
import type { Fence } from './leases.ts';

export type { Feed } from './holdings/window-rows.ts';

export type AnyFeed = Omit<Feed, 'stream'> & { stream: SyncName };

export interface Feeds extends Omit<AnyFeed, 'sink'> {
  sinks: readonly string[];
}

/** The progress made by a commit. Written in the same transaction as the rows where the sink allows it. */
export interface Advance extends Feed {
  /** Identifies this commit, so that its outcome can be looked up. */
  commitId: string;
  runId: string;
  epoch: number;
  /** The filters that its rows were read with; the commit is refused if they differ from those in the state. */
  filters?: string | undefined;
  since: Instant;
  /** The windows that this commit completes in the sink, in order. Empty if rows are delivered ahead of their proof. */
  spans: readonly Span[];
  /** The newest event that is not in the future; undefined if there is none. */
  newestSeen: Instant | undefined;
}

export interface Span extends Window {
  /** The certificate that the window is complete. Only certified windows advance the watermark. */
  certified: Certified | undefined;
  rows: number;
  /** The batch holds every row of the window: a row that only the sink has is no longer returned by the service. */
  whole?: boolean | undefined;
  note?: string | undefined;
}

/** Writes the windows and advances the cursor as far as is proven. Without `rows` (a sink that cannot count), windows get the rows read. */
export async function applyAdvance(tx: Queryable, fence: Fence, advance: Advance, rows?: SinkRows): Promise<void> {
  await fence.renew();
  if (rows) await carryRows(tx, advance, rows);
  for (const span of advance.spans) {
    if (span.certified && !Certified.covers(span.certified, span))
      throw new Error('a window was called complete without its proof');
    const known = (await tx.query<Nulled<Entry>>(deleteTouching(advance, span))).map(defined<Entry>);
    const entries = overlay(known, entryOf(span, advance.runId, fence.now));
    await tx.query(insertEntries(advance, rows ? await countByDay(entries, known, rows.count) : entries));
  }
  if (rows?.isAfterCrash) await recountRows(tx, advance, ALWAYS, rows.count);
  const [cursor] = await tx.query<{ from: Instant; certified: RangePairs }>(upsertCursor(advance));
  if (!cursor) throw new Error('the cursor was written and did not come back');
  const certified = cursor.certified.map(([start, end]) => ({ start, end }));
  const reached = completeThrough(certified, cursor.from);
  if (reached !== undefined)
    await tx.query(sql`update tributary.cursors set complete_through = ${toIso(reached)} where ${ofFeed(advance)}`);
}

export const entryOf = ({ start, end, certified, rows, note }: Span, runId: string, now: Instant): Entry => ({
  ...{ start, end, certified: certified !== undefined, rows, note, runId },
  ...{ readAt: now, provenAt: certified ? now : undefined },
});

/** Restores an advance from the text that its commit wrote. The certificates were checked then; the text only has their windows. */
export const readBack = (advance: Advance): Advance => ({
  ...advance,
  spans: advance.spans.map((span) => ({ ...span, certified: span.certified && Certified.onRecord(span) })),
});

export async function readLedger(db: Queryable, { sink, ...feed }: Feed, from: Instant): Promise<Entry[]> {
  return (await readLedgers(db, { ...feed, sinks: [sink] }, from)).get(sink) ?? [];
}

export async function readLedgers(db: Queryable, feeds: Feeds, from: Instant): Promise<Map<string, Entry[]>> {
  const values = [feeds.source, feeds.stream, feeds.sinks, toIso(from)];
  return ledgersOf(feeds.sinks, await db.query<SinkLedgerRow>({ text: selectEntries('$4'), values }));
}

export type SinkLedgerRow = Nulled<Entry> & { sink: string };

/** The prefix of the note of every reopened window: syncs, `status` and alerts recognise these windows by it. */
export const SINK_CHANGED = 'the sink was changed: ';

/** Of source $1 and stream $2 in the sinks $3, in order: windows that end after `from`, and reopened ones of backfills before it. */
export const selectEntries = (from: string): string => `
  select sink, ${ENTRY} from tributary.windows
  where source = $1 and stream = $2 and sink = any($3)
    and (end_at > ${from} or (state = 'uncertified' and starts_with(note, '${SINK_CHANGED}'))) order by start_at`;

export function ledgersOf(sinks: readonly string[], rows: readonly SinkLedgerRow[]): Map<string, Entry[]> {
  const ledgers = new Map<string, Entry[]>(sinks.map((sink) => [sink, []]));
  for (const { sink, ...row } of rows) ledgers.get(sink)?.push(defined<Entry>(row));
  return ledgers;
}

const ALWAYS: Window = { start: Number.NEGATIVE_INFINITY, end: Number.POSITIVE_INFINITY };

const ENTRY = `${instantOf('start_at')} as start, ${instantOf('end_at')} as "end", state = 'certified' as certified, rows,
  ${instantOf('read_at')} as "readAt", ${instantOf('proven_at')} as "provenAt", run_id as "runId", note, nullif(tries, 0) as tries`;

const deleteTouching = (feed: Feed, { start, end }: Window): Sql => sql`
  delete from tributary.windows where ${ofFeed(feed)} and start_at <= ${toIso(end)} and end_at >= ${toIso(start)}
  returning ${raw(ENTRY)}`;

function insertEntries({ source, stream, sink }: Feed, entries: readonly Entry[]): Sql {
  const rows = entries.map(({ start, end, certified, rows, readAt, provenAt, runId, note, tries = 0 }) => ({
    ...{ start_at: toIso(start), end_at: toIso(end), state: certified ? 'certified' : 'uncertified', rows, tries },
    ...{ read_at: toIso(readAt), proven_at: isoOrNull(provenAt), run_id: runId, note: note && storableText(note) },
  }));
  return sql`
    insert into tributary.windows (source, stream, sink, start_at, end_at, state, rows, read_at, proven_at, run_id, note, tries)
    select ${source}, ${stream}, ${sink}, e.* from jsonb_to_recordset(${JSON.stringify(rows)}) as e (start_at timestamptz,
      end_at timestamptz, state text, rows bigint, read_at timestamptz, proven_at timestamptz, run_id text, note text, tries integer)`;
}

const WATERMARK = 'coalesce(c.complete_through, c.since)';

/** The watermark never falls, unless `since` moves back to unread time. Returns it and the certified windows that end after it. */
const upsertCursor = ({ source, stream, sink, since, newestSeen, commitId }: Advance): Sql => sql`
  insert into tributary.cursors as c (source, stream, sink, since, newest_seen, last_commit)
  values (${source}, ${stream}, ${sink}, ${toIso(since)}, ${isoOrNull(newestSeen)}, ${commitId})
  on conflict (source, stream, sink) do update set
    since = least(c.since, excluded.since),
    complete_through = case when excluded.since < c.since then null else c.complete_through end,
    last_commit = excluded.last_commit,
    newest_seen = greatest(c.newest_seen, excluded.newest_seen),
    updated_at = now()
  returning ${instantOf(WATERMARK)} as from, (
    select coalesce(json_agg(json_build_array(${instantOf('start_at')}, ${instantOf('end_at')}) order by start_at), '[]')
    from tributary.windows
    where ${ofFeed({ source, stream, sink })} and state = 'certified' and end_at > ${raw(WATERMARK)}) as certified`;

/**
 * A feed guarantees: every event from `since` to `complete_through` that passes the filters is in the sink, except those set aside.
 * These columns are shown beside the watermark everywhere; each is an SQL expression on a cursor `c`.
 */
export const COVERAGE = {
  filters: `(select nullif(f.filters, '') from tributary.filters f where (f.source, f.stream) = (c.source, c.stream))`,
  setAside: `(select count(*) from tributary.quarantine q where (q.source, q.stream) = (c.source, c.stream))`,
  /** What is proven before `since`, and after a gap: a multirange. */
  alsoComplete: `(
    select coalesce(range_agg(tstzrange(w.start_at, w.end_at)), '{}')
      - tstzmultirange(tstzrange(c.since, coalesce(c.complete_through, c.since)))
    from tributary.windows w
    where (w.source, w.stream, w.sink) = (c.source, c.stream, c.sink) and w.state = 'certified')`,
} as const;

/** The same ranges as a JSON list of `[start, end]`, in order. */
export const ALSO_COMPLETE_LIST = `(
  select coalesce(jsonb_agg(jsonb_build_array(${instantOf('lower(r)')}, ${instantOf('upper(r)')}) order by r), '[]')
  from unnest(${COVERAGE.alsoComplete}) r)`;

export type RangePairs = ReadonlyArray<readonly [Instant, Instant]>;

/** A feed as shown by the view `coverage` and `_coverage.json`. */
export interface CoverageRow {
  source: string;
  stream: string;
  since: Date;
  complete_through: Date | null;
  filters: string | null;
  set_aside: number;
  also_complete: ReadonlyArray<{ start: string; end: string }>;
  newest_seen: Date | null;
  updated_at: Date;
}

export async function readCoverage(db: Queryable, feed: AnyFeed): Promise<CoverageRow | undefined> {
  const [row] = await db.query<Omit<CoverageRow, 'also_complete'> & { also_complete: RangePairs }>(sql`
    select source, stream, since, complete_through, ${raw(COVERAGE.filters)} as filters, ${raw(COVERAGE.setAside)} as set_aside,
      ${raw(ALSO_COMPLETE_LIST)} as also_complete, newest_seen, updated_at
    from tributary.cursors c where ${ofFeed(feed)}`);
  return row && { ...row, also_complete: isoRanges(row.also_complete) };
}

export const isoRanges = (pairs: RangePairs): Array<{ start: string; end: string }> =>
  pairs.map(([start, end]) => ({ start: toIso(start), end: toIso(end) }));

/** The milliseconds of a range that are proven in the sink with the fewest. All arguments are SQL; `sinks` selects a column `sink`. */
export const provenMs = (of: Record<'source' | 'stream' | 'start' | 'end' | 'sinks', string>): string => `(
  select coalesce(min(ms), 0) from (
    select round(coalesce(sum(extract(epoch from least(w.end_at, ${of.end}) - greatest(w.start_at, ${of.start})))
        filter (where w.sink is not null), 0) * 1000)::float8 as ms
    from (${of.sinks}) s left join tributary.windows w on (w.source, w.stream, w.sink) = (${of.source}, ${of.stream}, s.sink)
      and w.state = 'certified' and w.end_at > ${of.start} and w.start_at < ${of.end}
    group by s.sink) each_sink)`;

/** The share of a window that is proven in the sink with the smallest share: 1 only if all of it is proven in every sink. */
export async function certifiedShare(
  db: Queryable,
  { source, stream }: Pick<Feed, 'source' | 'stream'>,
  sinks: readonly string[],
  { start, end }: Window,
): Promise<number> {
  const range = { start: '$4::timestamptz', end: '$5::timestamptz' };
  const [row] = await db.query<{ ms: number }>({
    text: `select ${provenMs({ source: '$1', stream: '$2', sinks: 'select unnest($3::text[]) as sink', ...range })} as ms`,
    values: [source, stream, sinks, toIso(start), toIso(end)],
  });
  return (row?.ms ?? 0) / (end - start);
}
