/** What the worker keeps: when streams are due, what is parked, whom it told, backfills, budgets; and who changed what. */
export const WORKER_TABLES = (s: string): string => `
create table if not exists ${s}.schedules (
  source text not null, stream text not null,
  plan text not null,
  next_run_at timestamptz not null default now(),
  failures integer not null default 0,
  created_at timestamptz not null default now(),
  primary key (source, stream)
);
comment on table ${s}.schedules is 'When each stream is due. Jobs in the queue are hints; this is the truth, and a queue that was lost is filled again from here.';
comment on column ${s}.schedules.failures is 'Runs that failed in a row. The next try comes sooner than a rare schedule would bring it, and later each time.';

create table if not exists ${s}.parked (
  source text not null, stream text not null,
  fingerprint text not null,
  reason text not null,
  next_step text,
  since timestamptz not null default now(),
  probes integer not null default 0,
  next_probe_at timestamptz not null,
  primary key (source, stream)
);
comment on table ${s}.parked is 'What the service refused, and asking again cannot help: a source (stream *) or one stream. It is tried again rarely, and at once when its config changes.';

create table if not exists ${s}.incidents (
  id bigint generated always as identity primary key,
  source text not null, stream text not null,
  kind text not null,
  message text not null,
  opened_at timestamptz not null default now(),
  told_at timestamptz,
  closed_at timestamptz,
  recovery_told_at timestamptz,
  claimed_until timestamptz
);
-- Kinds of incidents are the program's business: another one needs no migration.
alter table ${s}.incidents drop constraint if exists incidents_kind_check;
comment on table ${s}.incidents is 'What somebody had to be told: one row per incident, with when it was told and when it was over.';
create unique index if not exists incidents_open on ${s}.incidents (source, stream, kind) where closed_at is null;

create table if not exists ${s}.backfills (
  id text primary key,
  source text not null, stream text not null,
  start_at timestamptz not null,
  end_at timestamptz not null check (end_at > start_at),
  force boolean not null,
  state text not null default 'queued' check (state in ('queued', 'paused', 'cancelled', 'done', 'failed')),
  created_at timestamptz not null default now(),
  finished_at timestamptz
);
alter table ${s}.backfills add column if not exists priced_rows bigint;
comment on table ${s}.backfills is 'Backfills that were given to the queue.';
comment on column ${s}.backfills.priced_rows is 'How many rows it was expected to read when it was started; null where nobody asked for its price.';

create table if not exists ${s}.backfill_windows (
  backfill_id text not null references ${s}.backfills on delete cascade,
  start_at timestamptz not null,
  end_at timestamptz not null check (end_at > start_at),
  state text not null default 'queued' check (state in ('queued', 'running', 'done', 'failed')),
  tries integer not null default 0,
  rows_read bigint not null default 0,
  message text,
  claimed_until timestamptz,
  primary key (backfill_id, start_at)
);
comment on table ${s}.backfill_windows is 'The windows of a backfill. One that is running belongs to a worker until claimed_until.';

create table if not exists ${s}.budgets (
  key_hash text primary key,
  per_second float8 not null,
  paused_until timestamptz not null default 'epoch'
) with (fillfactor = 20);
-- Before 0.1.0 the rules of the budget were SQL, with a column for each of their values.
alter table ${s}.budgets
  drop column if exists careful_until, drop column if exists next_at, drop column if exists left_at, drop column if exists grants,
  drop column if exists widening, drop column if exists era, drop column if exists pauses_in_vain, drop column if exists probing,
  drop column if exists alone_until, drop column if exists waits_until, drop column if exists passed_over,
  add column if not exists state jsonb not null default '{}';
comment on table ${s}.budgets is 'One row per API key: when the next request of any process may leave. Times are of this database''s clock.';
comment on column ${s}.budgets.key_hash is 'A digest of the key, never the key.';
comment on column ${s}.budgets.per_second is 'The rate in force: the most careful one that was asked with of late.';
comment on column ${s}.budgets.state is 'When the next request of any process may leave, and why. Times are milliseconds of this database''s clock.';

create table if not exists ${s}.budget_use (
  key_hash text not null, minute timestamptz not null,
  per_second float8 not null,
  fresh integer not null default 0, repair integer not null default 0, backfill integer not null default 0,
  too_many integer not null default 0,
  pauses integer not null default 0,
  primary key (key_hash, minute)
) with (fillfactor = 50);
comment on table ${s}.budget_use is 'Requests of each key and minute, by lane, with the 429s that came back. Kept for seven days.';

create table if not exists ${s}.audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  action text not null,
  target text,
  origin text,
  detail jsonb not null default '{}'
);
comment on table ${s}.audit is 'Every change that somebody asked for: who, what, when, from where. Rows are added, never changed.';
comment on column ${s}.audit.actor is 'The name of a token, or the user of the machine who ran the command.';
comment on column ${s}.audit.target is 'What was changed: a source, a stream, a backfill, a customer (as a digest).';
comment on column ${s}.audit.origin is 'The address that a request came from, or the host that the command ran on.';

create table if not exists ${s}.sources (
  name text primary key,
  base_url text not null,
  adopted_at timestamptz not null default now()
);
alter table ${s}.sources add column if not exists workspace text, add column if not exists key_hash text;
comment on table ${s}.sources is 'The service behind each name. Another one under the same name is refused until somebody adopts it: rows of two services would mix.';
comment on column ${s}.sources.workspace is 'The workspace that its rows belong to, as they say themselves.';
comment on column ${s}.sources.key_hash is 'The key that showed it, as a digest: a new key may lead to another workspace.';

create table if not exists ${s}.ended_sessions (
  id text primary key,
  expires_at timestamptz not null
);
comment on table ${s}.ended_sessions is 'Sessions of the control room that were signed out, as digests, until they would have expired anyway.';`;
