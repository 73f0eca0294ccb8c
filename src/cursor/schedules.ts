import { type Instant, toIso } from '../model/instant.ts';
import type { SyncName } from '../model/streams.ts';
import type { Queryable } from './database/index.ts';
import { instantOf, isoOf, sql, storableText } from './database/sql.ts';

/** Times are by the database's clock, because workers whose clocks differ must agree on what is due. */
export interface Due {
  source: string;
  stream: SyncName;
  nextRunAt: Instant;
  failures: number;
  now: Instant;
}

/** A due stream with everything else that decides whether it can run, so that most polls need no further query. */
interface DueStream extends Due {
  isParked: boolean;
  holder: string | null;
}

interface Planned {
  source: string;
  stream: SyncName;
  /** The schedule as text: if it changes, the stream is due at once and rescheduled. */
  plan: string;
}

/** Schedules the streams of the config, new ones as due now, and removes those that the config no longer has. */
export async function writeSchedules(db: Queryable, wanted: readonly Planned[]): Promise<void> {
  const all = JSON.stringify(wanted);
  await db.query(sql`
    insert into tributary.schedules as s (source, stream, plan)
    select * from jsonb_to_recordset(${all}) as w (source text, stream text, plan text)
    on conflict (source, stream) do update set plan = excluded.plan, next_run_at = now()
      where s.plan <> excluded.plan`);
  await db.query(sql`
    delete from tributary.schedules s where not exists (
      select from jsonb_to_recordset(${all}) as w (source text, stream text)
      where (w.source, w.stream) = (s.source, s.stream))`);
}

export const readSchedules = (db: Queryable): Promise<Due[]> =>
  db.query<Due>(sql`select ${DUE} from tributary.schedules order by next_run_at`);

/** The update compares next_run_at with the value read, not with the clock: if two workers read the same, only one succeeds. */
export async function claimDue(
  db: Queryable,
  { source, stream }: Pick<Due, 'source' | 'stream'>,
  { earlyMs, forMs }: { earlyMs: number; forMs: number },
): Promise<DueStream | undefined> {
  const [due] = await db.query<DueStream>(sql`
    with due as materialized (
      select ${DUE}, next_run_at as seen_at,
        exists (select from tributary.parked p where p.source = ${source} and p.stream in (${stream}, '*')) as "isParked",
        (select holder from tributary.leases l
          where l.source = ${source} and l.stream = ${stream} and expires_at > clock_timestamp()) as holder
      from tributary.schedules where source = ${source} and stream = ${stream}
        and next_run_at <= clock_timestamp() + make_interval(secs => ${earlyMs}::float8 / 1000))
    update tributary.schedules s set next_run_at = clock_timestamp() + make_interval(secs => ${forMs}::float8 / 1000)
    from due where s.source = ${source} and s.stream = ${stream} and s.next_run_at = due.seen_at
    returning due.source, due.stream, due.failures, due."nextRunAt", due.now, due."isParked", due.holder`);
  return due;
}

/** One stream, or all of the source if `stream` is `*`. */
export async function scheduleNext(
  db: Queryable,
  { source, stream }: Pick<Parked, 'source' | 'stream'>,
  { at, failures }: { at: Instant; failures: number },
): Promise<void> {
  await db.query(sql`
    update tributary.schedules set next_run_at = ${toIso(at)}::timestamptz, failures = ${failures}
    where source = ${source} and ${stream} in (stream, '*')`);
}

export async function isLeased(db: Queryable, source: string, stream: SyncName): Promise<boolean> {
  const held = await db.query(
    sql`select from tributary.leases where source = ${source} and stream = ${stream} and expires_at > clock_timestamp()`,
  );
  return held.length > 0;
}

const DUE = sql`
  source, stream, failures, ${instantOf('next_run_at')} as "nextRunAt", ${instantOf('clock_timestamp()')} as now`;

/** When the worker next runs a stream, and whether the stream is parked. Times are ISO in UTC. */
export interface Upcoming {
  nextRunAt: string | null;
  parked: { reason: string; nextStep: string | null; since: string; nextProbeAt: string } | null;
}

export async function readUpcoming(state: Queryable): Promise<(source: string, stream: string) => Upcoming> {
  const schedules = await state.query<{ source: string; stream: string; next: string }>(
    sql`select source, stream, ${isoOf('next_run_at')} as next from tributary.schedules`,
  );
  const parked = await state.query<{ source: string; stream: string; why: NonNullable<Upcoming['parked']> }>(sql`
    select source, stream, json_build_object('reason', reason, 'nextStep', next_step, 'since', ${isoOf('since')},
      'nextProbeAt', ${isoOf('next_probe_at')}) as why
    from tributary.parked`);
  const isOf = (source: string, streams: readonly string[]) => (one: { source: string; stream: string }) =>
    one.source === source && streams.includes(one.stream);
  return (source, stream) => ({
    nextRunAt: schedules.find(isOf(source, [stream]))?.next ?? null,
    parked: parked.find(isOf(source, [stream, WHOLE_SOURCE]))?.why ?? null,
  });
}

/** Stands for the whole source: its key was refused, which every stream uses. */
export const WHOLE_SOURCE = '*';

interface Parked {
  source: string;
  /** One stream, or `*` for all of the source. */
  stream: string;
  /** The message of the service; never contains the key. */
  reason: string;
  nextProbeAt: Instant;
}

interface Parking extends Parked {
  stream: SyncName | typeof WHOLE_SOURCE;
  /** Of the refused config: if it changes, the stream is unparked and probed at once. */
  fingerprint: string;
  nextStep: string | undefined;
}

/** Parks a stream. If it is already parked, `since` and the next probe stay as they are. */
export async function park(db: Queryable, parking: Parking): Promise<void> {
  const { source, stream, fingerprint, reason, nextStep, nextProbeAt } = parking;
  const [kept] = await db.query<{ probe: Instant }>(sql`
    insert into tributary.parked as p (source, stream, fingerprint, reason, next_step, next_probe_at)
    values (${source}, ${stream}, ${fingerprint}, ${storableText(reason)}, ${nextStep}, ${toIso(nextProbeAt)})
    on conflict (source, stream) do update
      set reason = excluded.reason, next_step = excluded.next_step, fingerprint = excluded.fingerprint
    returning ${instantOf('next_probe_at')} as probe`);
  await scheduleNext(db, parking, { at: kept?.probe ?? nextProbeAt, failures: 0 });
}

export async function readParked(db: Queryable, source: string, stream: SyncName): Promise<Parked[]> {
  return db.query<Parked>(sql`
    select source, stream, reason, ${instantOf('next_probe_at')} as "nextProbeAt"
    from tributary.parked where source = ${source} and stream in (${stream}, '*')`);
}

/** Claims a due probe: one of many workers asks the service, the others wait for the outcome. */
export async function claimProbe(
  db: Queryable,
  { source, stream }: Pick<Parked, 'source' | 'stream'>,
  backoff: (probes: number) => number,
): Promise<Instant | undefined> {
  const [due] = await db.query<{ probes: number; now: Instant }>(sql`
    select probes, ${instantOf('clock_timestamp()')} as now from tributary.parked
    where source = ${source} and stream = ${stream} and next_probe_at <= clock_timestamp()`);
  if (!due) return undefined;
  const next = due.now + backoff(due.probes + 1);
  const taken = await db.query(sql`
    update tributary.parked set probes = probes + 1, next_probe_at = ${toIso(next)}
    where source = ${source} and stream = ${stream} and probes = ${due.probes} returning source`);
  return taken.length > 0 ? next : undefined;
}

/** For a user who may have fixed the reason for parking. The probe backoff restarts, as the fix may take effect later. */
export async function makeDue(db: Queryable, source: string, stream: SyncName): Promise<void> {
  await db.query(sql`
    with probed as (
      update tributary.parked set next_probe_at = clock_timestamp(), probes = 0 where source = ${source} and stream in (${stream}, '*'))
    update tributary.schedules set next_run_at = clock_timestamp(), failures = 0 where source = ${source} and stream = ${stream}`);
}

/** The service accepts requests again: the streams that were parked are due now. */
export async function unpark(db: Queryable, { source, stream }: Pick<Parked, 'source' | 'stream'>): Promise<void> {
  const [deleted] = await db.query<{ now: Instant }>(sql`
    delete from tributary.parked where source = ${source} and stream = ${stream}
    returning ${instantOf('clock_timestamp()')} as now`);
  if (deleted) await scheduleNext(db, { source, stream }, { at: deleted.now, failures: 0 });
}

/** Unparks streams whose config has changed since, or which the config no longer has. */
export async function unparkChanged(
  db: Queryable,
  fingerprints: ReadonlyArray<{ source: string; stream: string; fingerprint: string }>,
): Promise<void> {
  const changed = await db.query<Pick<Parked, 'source' | 'stream'>>(sql`
    select source, stream from tributary.parked p where not exists (
      select from jsonb_to_recordset(${JSON.stringify(fingerprints)}) as f (source text, stream text, fingerprint text)
      where f.source = p.source and p.stream in (f.stream, '*') and f.fingerprint = p.fingerprint)`);
  for (const each of changed) await unpark(db, each);
}
