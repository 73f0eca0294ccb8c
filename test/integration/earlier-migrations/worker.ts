import type { Migration } from '../../../src/cursor/migrations/migrate.ts';

/** What the worker keeps: when streams are due, what is parked, whom it told, and backfills. */
export const WORKER_TABLES: Migration = {
  version: 5,
  name: 'schedules, parked streams, incidents, backfills',
  sql: (s) => `
create table ${s}.schedules (
  source      text not null,
  stream      text not null,
  plan        text not null,
  next_run_at timestamptz not null default now(),
  failures    integer not null default 0,
  created_at  timestamptz not null default now(),
  primary key (source, stream)
);
comment on table ${s}.schedules is 'When each stream is due. Jobs in the queue are hints; this is the truth, and a queue that was lost is filled again from here.';
comment on column ${s}.schedules.failures is 'Runs that failed in a row. The next try comes sooner than a rare schedule would bring it, and later each time.';

create table ${s}.parked (
  source        text not null,
  stream        text not null,
  fingerprint   text not null,
  reason        text not null,
  next_step     text,
  since         timestamptz not null default now(),
  probes        integer not null default 0,
  next_probe_at timestamptz not null,
  primary key (source, stream)
);
comment on table ${s}.parked is 'What the service refused, and asking again cannot help: a source (stream *) or one stream. It is tried again rarely, and at once when its config changes.';

create table ${s}.incidents (
  id               bigint generated always as identity primary key,
  source           text not null,
  stream           text not null,
  kind             text not null check (kind in ('parked', 'late', 'uncertified')),
  message          text not null,
  opened_at        timestamptz not null default now(),
  told_at          timestamptz,
  closed_at        timestamptz,
  recovery_told_at timestamptz,
  claimed_until    timestamptz
);
comment on table ${s}.incidents is 'What somebody had to be told: one row per incident, with when it was told and when it was over.';
create unique index incidents_open on ${s}.incidents (source, stream, kind) where closed_at is null;

create table ${s}.backfills (
  id          text primary key,
  source      text not null,
  stream      text not null,
  start_at    timestamptz not null,
  end_at      timestamptz not null check (end_at > start_at),
  force       boolean not null,
  state       text not null default 'queued' check (state in ('queued', 'paused', 'cancelled', 'done', 'failed')),
  created_at  timestamptz not null default now(),
  finished_at timestamptz
);
comment on table ${s}.backfills is 'Backfills that were given to the queue.';

create table ${s}.backfill_windows (
  backfill_id   text not null references ${s}.backfills on delete cascade,
  start_at      timestamptz not null,
  end_at        timestamptz not null check (end_at > start_at),
  state         text not null default 'queued' check (state in ('queued', 'running', 'done', 'failed')),
  tries         integer not null default 0,
  rows_read     bigint not null default 0,
  message       text,
  claimed_until timestamptz,
  primary key (backfill_id, start_at)
);
comment on table ${s}.backfill_windows is 'The windows of a backfill. One that is running belongs to a worker until claimed_until.';

alter table ${s}.windows add column tries integer not null default 0;
comment on column ${s}.windows.tries is 'Runs in a row that could not prove this window. After five it is left alone; the watermark waits before it.';
`,
};

/** One budget per key, over all processes. */
export const BUDGET_TABLES: Migration = {
  version: 3,
  name: 'budgets shared by all processes',
  sql: (s) => `
create table ${s}.budgets (
  key_hash       text primary key,
  per_second     float8 not null,
  careful_until  timestamptz not null default 'epoch',
  next_at        timestamptz not null default 'epoch',
  left_at        timestamptz[] not null default array_fill('epoch'::timestamptz, '{16}'),
  grants         bigint not null default 0,
  paused_until   timestamptz not null default 'epoch',
  widening       float8 not null default 1,
  era            integer not null default 0,
  pauses_in_vain integer not null default 0,
  probing        boolean not null default false,
  alone_until    timestamptz not null default 'epoch',
  waits_until    timestamptz[] not null default '{epoch,epoch,epoch}',
  passed_over    integer[] not null default '{0,0,0}'
) with (fillfactor = 20);
comment on table ${s}.budgets is 'One row per API key: when the next request of any process may leave. Times are of this database''s clock.';
comment on column ${s}.budgets.key_hash is 'A digest of the key, never the key.';
comment on column ${s}.budgets.per_second is 'The rate in force: the most careful one that was asked with of late (careful_until).';
comment on column ${s}.budgets.left_at is 'When the last requests left, the newest first.';
comment on column ${s}.budgets.era is 'Rises with every pause. A 429 of a request that left in an earlier era starts no new pause.';
comment on column ${s}.budgets.waits_until is 'Fresh, repair, backfill: until when somebody of this lane is expected to come for a turn.';
comment on column ${s}.budgets.passed_over is 'Fresh, repair, backfill: how many of more urgent lanes went since this one, which waits, had a turn.';

create table ${s}.budget_use (
  key_hash   text not null,
  minute     timestamptz not null,
  per_second float8 not null,
  fresh      integer not null default 0,
  repair     integer not null default 0,
  backfill   integer not null default 0,
  too_many   integer not null default 0,
  pauses     integer not null default 0,
  primary key (key_hash, minute)
) with (fillfactor = 50);
comment on table ${s}.budget_use is 'Requests of each key and minute, by lane, with the 429s that came back. Kept for seven days.';
`,
};

/** The rules moved from SQL to the processes: the row keeps their state as one value, and shows what people look for. */
export const BUDGET_STATE: Migration = {
  version: 10,
  name: 'the state of a budget as one value',
  sql: (s) => `
alter table ${s}.budgets
  drop column careful_until, drop column next_at, drop column left_at, drop column grants, drop column widening, drop column era,
  drop column pauses_in_vain, drop column probing, drop column alone_until, drop column waits_until, drop column passed_over,
  add column state jsonb not null default '{}';
comment on column ${s}.budgets.state is 'When the next request of any process may leave, and why. Times are milliseconds of this database''s clock.';
comment on column ${s}.budgets.per_second is 'The rate in force: the most careful one that was asked with of late.';
`,
};

/** Who changed what, and which service stands behind the name of a source. */
export const AUDIT_TABLES: Migration = {
  version: 8,
  name: 'audit trail, identity of sources',
  sql: (s) => `
create table ${s}.audit (
  id     bigint generated always as identity primary key,
  at     timestamptz not null default clock_timestamp(),
  actor  text not null,
  action text not null,
  target text,
  origin text,
  detail jsonb not null default '{}'
);
comment on table ${s}.audit is 'Every change that somebody asked for: who, what, when, from where. Rows are added, never changed.';
comment on column ${s}.audit.actor is 'The name of a token, or the user of the machine who ran the command.';
comment on column ${s}.audit.target is 'What was changed: a source, a stream, a backfill, a customer (as a digest).';
comment on column ${s}.audit.origin is 'The address that a request came from, or the host that the command ran on.';

create table ${s}.sources (
  name       text primary key,
  base_url   text not null,
  adopted_at timestamptz not null default now()
);
comment on table ${s}.sources is 'The service behind each name. Another one under the same name is refused until somebody adopts it: rows of two services would mix.';
`,
};

/** The same address shows another workspace to another key. */
export const WORKSPACES: Migration = {
  version: 13,
  name: 'the workspace of a source',
  sql: (s) => `
alter table ${s}.sources add column workspace text, add column key_hash text;
comment on column ${s}.sources.workspace is 'The workspace that its rows belong to, as they say themselves.';
comment on column ${s}.sources.key_hash is 'The key that showed it, as a digest: a new key may lead to another workspace.';
`,
};

/** Time says little about how far a backfill is: half of the rows may lie in its last day. */
export const PRICED_ROWS: Migration = {
  version: 14,
  name: 'the priced rows of a backfill',
  sql: (s) => `
alter table ${s}.backfills add column priced_rows bigint;
comment on column ${s}.backfills.priced_rows is 'How many rows it was expected to read when it was started; null where nobody asked for its price.';
`,
};

/** What a run said and asked, for its page: a failed night must be explainable in the morning, by whichever process ran it. */
export const RUN_LOG: Migration = {
  version: 16,
  name: 'the log of a run',
  sql: (s) => `
create table ${s}.run_log (
  run_id text not null references ${s}.runs (id) on delete cascade,
  kind   text not null check (kind in ('line', 'request')),
  id     bigint generated always as identity,
  at     timestamptz not null,
  entry  jsonb not null,
  primary key (run_id, kind, id)
);
comment on table ${s}.run_log is 'The last lines and requests of each run of the last days.';
`,
};

/** Kinds of incidents are the program's business: another one needs no migration. */
export const INCIDENTS_OF_ANY_KIND: Migration = {
  version: 24,
  name: 'incidents of any kind',
  sql: (s) => `alter table ${s}.incidents drop constraint if exists incidents_kind_check;`,
};

/** What a run wrote into each sink, where they differ. */
export const ROWS_BY_SINK: Migration = {
  version: 25,
  name: 'rows by sink',
  sql: (s) => `alter table ${s}.runs add column rows_by_sink jsonb;`,
};

/** A session of the control room is a signed cookie that nobody stores. What is stored is that one was ended before its time. */
export const ENDED_SESSIONS: Migration = {
  version: 9,
  name: 'ended sessions',
  sql: (s) => `
create table ${s}.ended_sessions (
  id         text primary key,
  expires_at timestamptz not null
);
comment on table ${s}.ended_sessions is 'Sessions of the control room that were signed out, as digests, until they would have expired anyway.';
`,
};
