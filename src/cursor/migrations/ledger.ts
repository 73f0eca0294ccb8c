/** What the engine keeps: how far each stream is, what was read and proven, what the sinks hold, and what was set aside. */
export const LEDGER_TABLES = (s: string): string => `
create table if not exists ${s}.cursors (
  source text not null, stream text not null, sink text not null,
  since timestamptz not null,
  complete_through timestamptz,
  newest_seen timestamptz,
  last_commit text,
  updated_at timestamptz not null default now(),
  primary key (source, stream, sink)
);
comment on table ${s}.cursors is 'One row per source, stream and sink: how far it is complete, and how far rows have come.';
comment on column ${s}.cursors.since is 'Where the first sync began. Completeness is counted from here.';
comment on column ${s}.cursors.complete_through is 'The watermark: every event from since up to here that the filters let through is in the sink, except records in quarantine. Null: nothing proven yet.';
comment on column ${s}.cursors.newest_seen is 'Time of the newest event delivered, proven or not.';

create table if not exists ${s}.windows (
  source text not null, stream text not null, sink text not null,
  start_at timestamptz not null,
  end_at timestamptz not null check (end_at > start_at),
  state text not null check (state in ('certified', 'uncertified')),
  rows bigint not null,
  read_at timestamptz not null default now(),
  proven_at timestamptz,
  run_id text not null,
  note text,
  primary key (source, stream, sink, start_at)
);
alter table ${s}.windows add column if not exists tries integer not null default 0;
comment on table ${s}.windows is 'The ledger: every window that was read, whether it is proven complete, and when that was last proven.';
comment on column ${s}.windows.tries is 'Runs in a row that could not prove this window. After five it is tried once a day; the watermark waits before it.';

create table if not exists ${s}.runs (
  id text primary key,
  kind text not null,
  source text not null, stream text not null,
  state text not null default 'running' check (state in ('running', 'done', 'incomplete', 'refused', 'interrupted', 'failed')),
  started_at timestamptz not null default now(),
  finished_at timestamptz,
  rows_read bigint not null default 0,
  rows_new bigint not null default 0,
  rows_changed bigint not null default 0,
  rows_unchanged bigint not null default 0,
  rows_quarantined bigint not null default 0,
  rows_mended bigint not null default 0,
  requests bigint not null default 0,
  too_many_requests bigint not null default 0,
  contradictions jsonb not null default '{}',
  misfits jsonb not null default '{}',
  schema_changes jsonb not null default '[]',
  message text
);
alter table ${s}.runs add column if not exists rows_by_sink jsonb;
comment on table ${s}.runs is 'The history: one row per run of a stream, with what it read and changed.';
create index if not exists runs_by_stream on ${s}.runs (source, stream, started_at desc);
create index if not exists runs_by_time on ${s}.runs (started_at desc, id desc);

create table if not exists ${s}.run_log (
  run_id text not null references ${s}.runs (id) on delete cascade,
  kind text not null check (kind in ('line', 'request')),
  id bigint generated always as identity,
  at timestamptz not null,
  entry jsonb not null,
  primary key (run_id, kind, id)
);
comment on table ${s}.run_log is 'The last lines and requests of each run of the last days.';

create table if not exists ${s}.leases (
  source text not null, stream text not null,
  epoch bigint not null,
  holder text not null,
  expires_at timestamptz not null,
  primary key (source, stream)
);
alter table ${s}.leases
  add column if not exists gives_way boolean not null default false,
  add column if not exists wanted_until timestamptz;
comment on table ${s}.leases is 'Who may write a stream now. The epoch rises with every holder; a commit of an older epoch is refused.';
comment on column ${s}.leases.wanted_until is 'Until when somebody waits for the holder to give way: a backfill hands the stream over to a sync and takes it again.';

create table if not exists ${s}.profiles (
  source text not null, stream text not null,
  granularity text not null,
  tick_ms integer not null,
  page_rows integer not null,
  updated_at timestamptz not null default now(),
  primary key (source, stream)
);
alter table ${s}.profiles add column if not exists facts jsonb not null default '{}';
comment on table ${s}.profiles is 'What was noticed of each server: whether it widens bounds to days, how fine its clock is, how large a page may be.';
comment on column ${s}.profiles.facts is 'Further habits of the server, as the reader noticed them. Hints that save requests; no proof rests on them.';

create table if not exists ${s}.filters (
  source text not null, stream text not null,
  filters text not null,
  changed_at timestamptz not null default now(),
  primary key (source, stream)
);
comment on table ${s}.filters is 'What each stream was last asked for. Other filters ask for other events: completeness is then counted anew.';

create table if not exists ${s}.columns (
  id bigint generated always as identity primary key,
  stream text not null,
  path text not null,
  name text not null,
  kind text not null,
  previous_kind text,
  source text not null,
  run_id text not null,
  changed_at timestamptz not null default now()
);
comment on table ${s}.columns is 'Fields that nobody declared and that became columns, and every widening of one. The last word on a path counts.';

create table if not exists ${s}.forgotten (
  source text not null,
  kind text not null check (kind in ('customer', 'click')),
  digest text not null,
  forgotten_at timestamptz not null default now(),
  primary key (source, kind, digest)
);
comment on table ${s}.forgotten is 'Digests of ids that somebody asked to have erased: they are kept out of everything that is read later.';

create table if not exists ${s}.quarantine (
  id bigint generated always as identity primary key,
  source text not null, stream text not null,
  digest text not null,
  reason text not null,
  record text not null,
  run_id text not null,
  first_at timestamptz not null default now(),
  last_at timestamptz not null default now(),
  unique (source, stream, digest)
);
comment on table ${s}.quarantine is 'Records that could not be used, each with its reason. Link passwords are taken out.';

create table if not exists ${s}.attestations (
  source text not null, stream text not null, sink text not null,
  identity text not null,
  counted_at timestamptz,
  next_at timestamptz,
  next_rows bigint not null default 0,
  pruned_to timestamptz,
  primary key (source, stream, sink)
);
comment on table ${s}.attestations is 'When each sink was last asked what it holds, and how it identified itself then.';
comment on column ${s}.attestations.identity is 'Changes when somebody replaces or restores what the sink holds; then all its rows are counted.';
comment on column ${s}.attestations.counted_at is 'When the rows of every certified window were last compared with the ledger. Null: not yet.';
comment on column ${s}.attestations.next_at is 'A count is under way, newest first: windows from here on have been counted. Null: none is.';
comment on column ${s}.attestations.next_rows is 'Rows counted so far of the window that next_at lies in.';
comment on column ${s}.attestations.pruned_to is 'Events before this were deleted, because the config keeps no older ones.';

create table if not exists ${s}.foreign_rows (
  source text not null, stream text not null, sink text not null,
  start_at timestamptz not null,
  end_at timestamptz not null,
  what text not null,
  found_at timestamptz not null default now(),
  primary key (source, stream, sink, start_at)
);
comment on table ${s}.foreign_rows is 'Windows of a sink that hold rows of another writer. They are not certified until those rows are gone.';`;
