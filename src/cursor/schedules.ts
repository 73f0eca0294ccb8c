import { type Instant, toIso } from '../model/instant.ts';
import type { SyncName } from '../model/streams.ts';
import type { Queryable } from './database/index.ts';
import { instantOf, type Sql, storableText } from './database/sql.ts';

/**
 * When each stream is due, by the clock of the database, as for leases: workers whose clocks differ must agree on what is
 * due.
 */
export interface Due {
  source: string;
  stream: SyncName;
  nextRunAt: Instant;
  /** Runs that failed in a row. */
  failures: number;
  /** The database's clock when it was asked. */
  now: Instant;
}

/** One stream, with what else decides whether it can run: most polls need no further question. */
export interface DueStream extends Due {
  isParked: boolean;
  /** Who holds the stream now. */
  holder: string | null;
}

export interface Planned {
  source: string;
  stream: SyncName;
  /** The schedule as text: when it changes, what was planned by the old one is planned again. */
  plan: string;
}

/** Schedules the streams of the config, new ones at once, and removes those that the config no longer has. */
export async function writeSchedules(db: Queryable, wanted: readonly Planned[]): Promise<void> {
  await db.query(upsertSchedules(wanted));
  await db.query(deleteOthers(wanted));
}

export const readSchedules = (db: Queryable): Promise<Due[]> =>
  db.query<Due>({ text: `select ${DUE} from tributary.schedules order by next_run_at` });

/** Claims a stream if it is due within `earlyMs`: one of all who see it due at the same time gets it, as it was before. */
export async function claimDue(
  db: Queryable,
  { source, stream }: Pick<Due, 'source' | 'stream'>,
  claim: { earlyMs: number; forMs: number },
): Promise<DueStream | undefined> {
  return (await db.query<DueStream>(claimDueSql(source, stream, claim)))[0];
}

export async function scheduleNext(
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
export async function scheduleSource(db: Queryable, source: string, stream: string, at: Instant): Promise<void> {
  await db.query({
    text: `
      update tributary.schedules set next_run_at = $3::timestamptz, failures = 0
      where source = $1 and $2 in (stream, '*')`,
    values: [source, stream, toIso(at)],
  });
}

/** Whether somebody holds the stream now: then its rows are being brought already. */
export async function isLeased(db: Queryable, source: string, stream: SyncName): Promise<boolean> {
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

const DUE = `source, stream, failures, ${instantOf('next_run_at')} as "nextRunAt", ${instantOf('clock_timestamp()')} as now`;

/** Compares with the value that was read, not with the clock: of two workers that read the same value, one finds it changed. */
const claimDueSql = (source: string, stream: string, { earlyMs, forMs }: { earlyMs: number; forMs: number }): Sql => ({
  text: `
    with due as materialized (
      select ${DUE}, next_run_at as seen_at,
        exists (select from tributary.parked p where p.source = $1 and p.stream in ($2, '*')) as "isParked",
        (select holder from tributary.leases l where l.source = $1 and l.stream = $2 and expires_at > clock_timestamp()) as holder
      from tributary.schedules
      where source = $1 and stream = $2 and next_run_at <= clock_timestamp() + make_interval(secs => $3::float8 / 1000))
    update tributary.schedules s set next_run_at = clock_timestamp() + make_interval(secs => $4::float8 / 1000)
    from due where s.source = $1 and s.stream = $2 and s.next_run_at = due.seen_at
    returning due.source, due.stream, due.failures, due."nextRunAt", due.now, due."isParked", due.holder`,
  values: [source, stream, earlyMs, forMs],
});

/** What the worker has written down of a stream: when it is due, and whether it waits for a person. */
export interface Upcoming {
  nextRunAt: Date | undefined;
  parked: { reason: string; nextStep: string | null; since: Date; nextProbeAt: Date } | undefined;
}

type ParkedRow = NonNullable<Upcoming['parked']> & { source: string; stream: string };

/** A state that no worker has seen yet has none of these tables. */
export async function readUpcoming(state: Queryable): Promise<(source: string, stream: string) => Upcoming> {
  const [has] = await state.query<{ schedules: boolean; parked: boolean }>({
    text: `select to_regclass('tributary.schedules') is not null as schedules, to_regclass('tributary.parked') is not null as parked`,
  });
  const schedules = !has?.schedules
    ? []
    : await state.query<{ source: string; stream: string; next: Date }>({
        text: 'select source, stream, next_run_at as next from tributary.schedules',
      });
  const parked = !has?.parked
    ? []
    : await state.query<ParkedRow>({
        text: 'select source, stream, reason, next_step as "nextStep", since, next_probe_at as "nextProbeAt" from tributary.parked',
      });
  return (source, stream) => ({
    nextRunAt: schedules.find((one) => one.source === source && one.stream === stream)?.next,
    // `*`: the whole source.
    parked: parked.find((one) => one.source === source && (one.stream === stream || one.stream === '*')),
  });
}

/** The whole source: its key was refused, and every stream uses it. */
export const WHOLE_SOURCE = '*';

export interface Parked {
  source: string;
  /** One stream, or `*` for all of the source. */
  stream: string;
  reason: string;
  nextProbeAt: Instant;
}

export interface Parking {
  source: string;
  stream: SyncName | typeof WHOLE_SOURCE;
  /** Of the config that was refused: with another one, it is worth asking again at once. */
  fingerprint: string;
  /** The service's own words; never holds the key. */
  reason: string;
  nextStep: string | undefined;
  nextProbeAt: Instant;
}

/** Parks a stream. If it is parked already, the time it began and the next probe stay. */
export async function park(db: Queryable, parking: Parking): Promise<void> {
  const { source, stream, fingerprint, reason, nextStep, nextProbeAt } = parking;
  const [kept] = await db.query<{ probe: Instant }>({
    text: `
      insert into tributary.parked as p (source, stream, fingerprint, reason, next_step, next_probe_at)
      values ($1, $2, $3, $4, $5, $6)
      on conflict (source, stream) do update
        set reason = excluded.reason, next_step = excluded.next_step, fingerprint = excluded.fingerprint
      returning ${instantOf('next_probe_at')} as probe`,
    values: [source, stream, fingerprint, storableText(reason), nextStep ?? null, toIso(nextProbeAt)],
  });
  await scheduleSource(db, source, stream, kept?.probe ?? nextProbeAt);
}

/** What keeps a stream from running: itself parked, or its source. */
export async function readParked(db: Queryable, source: string, stream: SyncName): Promise<Parked[]> {
  return db.query<Parked>({
    text: `
      select source, stream, reason, ${instantOf('next_probe_at')} as "nextProbeAt"
      from tributary.parked where source = $1 and stream in ($2, '*')`,
    values: [source, stream],
  });
}

/** Claims the probe that is due: one of many workers asks the service, the others wait for its outcome. */
export async function claimProbe(
  db: Queryable,
  { source, stream }: Pick<Parked, 'source' | 'stream'>,
  backoff: (probes: number) => number,
): Promise<Instant | undefined> {
  const [due] = await db.query<{ probes: number; now: Instant }>({
    text: `
      select probes, ${instantOf('clock_timestamp()')} as now from tributary.parked
      where source = $1 and stream = $2 and next_probe_at <= clock_timestamp()`,
    values: [source, stream],
  });
  if (!due) return undefined;
  const next = due.now + backoff(due.probes + 1);
  const taken = await db.query({
    text: `
      update tributary.parked set probes = probes + 1, next_probe_at = $4
      where source = $1 and stream = $2 and probes = $3 returning source`,
    values: [source, stream, due.probes, toIso(next)],
  });
  return taken.length > 0 ? next : undefined;
}

/**
 * A person wants the stream now and may have fixed what it was refused for: it is due, and its probe too. Later probes start again
 * from the shortest interval, because the fix may take effect later.
 */
export async function makeDue(db: Queryable, source: string, stream: SyncName): Promise<void> {
  await db.query({
    text: `
      with probed as (
        update tributary.parked set next_probe_at = clock_timestamp(), probes = 0 where source = $1 and stream in ($2, '*'))
      update tributary.schedules set next_run_at = clock_timestamp(), failures = 0 where source = $1 and stream = $2`,
    values: [source, stream],
  });
}

/** It answers again: whatever waited for that is due now. */
export async function unpark(db: Queryable, { source, stream }: Pick<Parked, 'source' | 'stream'>): Promise<void> {
  const gone = await db.query<{ now: Instant }>({
    text: `
      delete from tributary.parked where source = $1 and stream = $2
      returning ${instantOf('clock_timestamp()')} as now`,
    values: [source, stream],
  });
  if (gone[0]) await scheduleSource(db, source, stream, gone[0].now);
}

/** Parked under a config that has changed since, or that the config no longer has. */
export async function unparkChanged(
  db: Queryable,
  fingerprints: ReadonlyArray<{ source: string; stream: string; fingerprint: string }>,
): Promise<void> {
  const changed = await db.query<Pick<Parked, 'source' | 'stream'>>({
    text: `
      select source, stream from tributary.parked p where not exists (
        select from jsonb_to_recordset($1) as f (source text, stream text, fingerprint text)
        where f.source = p.source and p.stream in (f.stream, '*') and f.fingerprint = p.fingerprint)`,
    values: [JSON.stringify(fingerprints)],
  });
  for (const each of changed) await unpark(db, each);
}
