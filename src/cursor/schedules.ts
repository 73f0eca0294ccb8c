import type { Instant } from '../model/instant.ts';
import { toIso } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import type { Queryable } from './database.ts';
import { instantOf, type Sql } from './sql.ts';

/**
 * When each stream is due. The clock is the database's, as it is for leases: workers on machines whose clocks differ must
 * not take turns at calling a stream due.
 */
export interface Due {
  source: string;
  stream: StreamName;
  nextRunAt: Instant;
  /** Runs that failed in a row. */
  failures: number;
  /** The database's clock when it was asked. */
  now: Instant;
}

export interface Planned {
  source: string;
  stream: StreamName;
  /** The schedule as text: when it changes, what was planned by the old one is planned anew. */
  plan: string;
}

/** Streams of the config are planned, at once where they are new; what the config no longer has is taken out. */
export async function writeSchedules(db: Queryable, wanted: readonly Planned[]): Promise<void> {
  await db.query(upsertSchedules(wanted));
  await db.query(deleteOthers(wanted));
}

export const readSchedules = (db: Queryable): Promise<Due[]> => db.query<Due>(selectSchedules());

export async function readSchedule(db: Queryable, source: string, stream: StreamName): Promise<Due | undefined> {
  return (await db.query<Due>(selectSchedules(source, stream)))[0];
}

/** Takes a turn: true for one of all who saw the stream due at the same time. */
export async function claimTurn(db: Queryable, due: Due, next: Instant): Promise<boolean> {
  return (await db.query(takeTurn(due, next))).length > 0;
}

export async function planNext(
  db: Queryable,
  { source, stream }: Pick<Due, 'source' | 'stream'>,
  { at, failures }: { at: Instant; failures: number },
): Promise<void> {
  await db.query({
    text: `
      update tributary.schedules set next_run_at = $3::timestamptz, failures = $4
      where source = $1 and stream = $2`,
    values: [source, stream, toIso(at), failures],
  });
}

/** Every stream of a source, or one of them, is due at the given moment. */
export async function planSource(db: Queryable, source: string, stream: string, at: Instant): Promise<void> {
  await db.query({
    text: `
      update tributary.schedules set next_run_at = $3::timestamptz, failures = 0
      where source = $1 and $2 in (stream, '*')`,
    values: [source, stream, toIso(at)],
  });
}

/** Whether somebody holds the stream now: then its rows are being brought already. */
export async function isLeased(db: Queryable, source: string, stream: StreamName): Promise<boolean> {
  const held = await db.query({
    text: 'select from tributary.leases where source = $1 and stream = $2 and expires_at > clock_timestamp()',
    values: [source, stream],
  });
  return held.length > 0;
}

const upsertSchedules = (wanted: readonly Planned[]): Sql => ({
  text: `
    insert into tributary.schedules as s (source, stream, plan)
    select * from jsonb_to_recordset($1) as w (source text, stream text, plan text)
    on conflict (source, stream) do update set plan = excluded.plan, next_run_at = now()
      where s.plan <> excluded.plan`,
  values: [JSON.stringify(wanted.map(({ source, stream, plan }) => ({ source, stream, plan })))],
});

const deleteOthers = (wanted: readonly Planned[]): Sql => ({
  text: `
    delete from tributary.schedules s where not exists (
      select from jsonb_to_recordset($1) as w (source text, stream text)
      where (w.source, w.stream) = (s.source, s.stream))`,
  values: [JSON.stringify(wanted.map(({ source, stream }) => ({ source, stream })))],
});

const selectSchedules = (source?: string, stream?: string): Sql => ({
  text: `
    select source, stream, failures, ${instantOf('next_run_at')} as "nextRunAt", ${instantOf('clock_timestamp()')} as now
    from tributary.schedules
    where ($1::text is null or source = $1) and ($2::text is null or stream = $2)
    order by next_run_at`,
  values: [source ?? null, stream ?? null],
});

/** By the value that was seen, not by the clock: of two who saw the same, one finds it changed. */
const takeTurn = ({ source, stream, nextRunAt }: Due, next: Instant): Sql => ({
  text: `
    update tributary.schedules set next_run_at = $4::timestamptz
    where source = $1 and stream = $2 and ${instantOf('next_run_at')} = $3::float8 returning source`,
  values: [source, stream, nextRunAt, toIso(next)],
});
