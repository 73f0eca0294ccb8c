import type { Migration } from '../../../src/cursor/migrations/migrate.ts';

/** What the engine keeps: how far each stream is, what was read and proven, and what was set aside. */
export const LEDGER_TABLES: Migration = {
  version: 1,
  name: 'cursors, ledger, runs, leases, profiles, columns, quarantine',
  sql: (s) => `
create table ${s}.cursors (
  source           text not null,
  stream           text not null,
  sink             text not null,
  since            timestamptz not null,
  complete_through timestamptz,
  newest_seen      timestamptz,
  last_commit      text,
  updated_at       timestamptz not null default now(),
  primary key (source, stream, sink)
);
comment on table ${s}.cursors is 'One row per source, stream and sink: how far it is complete, and how far rows have come.';
comment on column ${s}.cursors.since is 'Where the first sync began. Completeness is counted from here.';
comment on column ${s}.cursors.complete_through is 'The watermark: every event before this moment is proven to be in the sink. Null: nothing proven yet.';
comment on column ${s}.cursors.newest_seen is 'Time of the newest event delivered, proven or not.';

create table ${s}.windows (
  source    text not null,
  stream    text not null,
  sink      text not null,
  start_at  timestamptz not null,
  end_at    timestamptz not null check (end_at > start_at),
  state     text not null check (state in ('certified', 'uncertified')),
  rows      bigint not null,
  read_at   timestamptz not null default now(),
  proven_at timestamptz,
  run_id    text not null,
  note      text,
  primary key (source, stream, sink, start_at)
);
comment on table ${s}.windows is 'The ledger: every window that was read, whether it is proven complete, and when that was last proven.';

create table ${s}.runs (
  id                text primary key,
  kind              text not null,
  source            text not null,
  stream            text not null,
  state             text not null default 'running' check (state in ('running', 'done', 'incomplete', 'refused', 'interrupted', 'failed')),
  started_at        timestamptz not null default now(),
  finished_at       timestamptz,
  rows_read         bigint not null default 0,
  rows_new          bigint not null default 0,
  rows_changed      bigint not null default 0,
  rows_unchanged    bigint not null default 0,
  rows_quarantined  bigint not null default 0,
  rows_mended       bigint not null default 0,
  requests          bigint not null default 0,
  too_many_requests bigint not null default 0,
  contradictions    jsonb not null default '{}',
  misfits           jsonb not null default '{}',
  schema_changes    jsonb not null default '[]',
  message           text
);
comment on table ${s}.runs is 'The history: one row per run of a stream, with what it read and changed.';
create index runs_by_stream on ${s}.runs (source, stream, started_at desc);

create table ${s}.leases (
  source     text not null,
  stream     text not null,
  epoch      bigint not null,
  holder     text not null,
  expires_at timestamptz not null,
  primary key (source, stream)
);
comment on table ${s}.leases is 'Who may write a stream now. The epoch rises with every holder; a commit of an older epoch is refused.';

create table ${s}.profiles (
  source      text not null,
  stream      text not null,
  granularity text not null,
  tick_ms     integer not null,
  page_rows   integer not null,
  updated_at  timestamptz not null default now(),
  primary key (source, stream)
);
comment on table ${s}.profiles is 'What was noticed of each server: whether it widens bounds to days, how fine its clock is, how large a page may be.';

create table ${s}.columns (
  id            bigint generated always as identity primary key,
  stream        text not null,
  path          text not null,
  name          text not null,
  kind          text not null,
  previous_kind text,
  source        text not null,
  run_id        text not null,
  changed_at    timestamptz not null default now()
);
comment on table ${s}.columns is 'Fields that nobody declared and that became columns, and every widening of one. The last word on a path counts.';

create table ${s}.forgotten (
  source       text not null,
  kind         text not null check (kind in ('customer', 'click')),
  digest       text not null,
  forgotten_at timestamptz not null default now(),
  primary key (source, kind, digest)
);
comment on table ${s}.forgotten is 'Digests of ids that somebody asked to have erased: they are kept out of everything that is read later.';

create table ${s}.quarantine (
  id       bigint generated always as identity primary key,
  source   text not null,
  stream   text not null,
  digest   text not null,
  reason   text not null,
  record   text not null,
  run_id   text not null,
  first_at timestamptz not null default now(),
  last_at  timestamptz not null default now(),
  unique (source, stream, digest)
);
comment on table ${s}.quarantine is 'Records that could not be used, each with its reason. Link passwords are taken out.';
`,
};

/** What completeness was proven for, and how long work gives way to short. */
export const TURNS: Migration = {
  version: 2,
  name: 'filters that completeness was proven under, leases that give way',
  sql: (s) => `
create table ${s}.filters (
  source     text not null,
  stream     text not null,
  filters    text not null,
  changed_at timestamptz not null default now(),
  primary key (source, stream)
);
comment on table ${s}.filters is 'What each stream was last asked for. Other filters ask for other events: completeness is then counted anew.';

alter table ${s}.leases add column gives_way boolean not null default false, add column wanted_until timestamptz;
comment on column ${s}.leases.wanted_until is 'Until when somebody waits for the holder to give way: a backfill hands the stream over to a sync and takes it again.';
`,
};

/** The newest runs of all streams together, which a page shows: without it they would be found by reading the whole history. */
export const HISTORY_BY_TIME: Migration = {
  version: 6,
  name: 'the history by time',
  sql: (s) => `create index runs_by_time on ${s}.runs (started_at desc, id desc);`,
};

/** What is written beside the column: a window that could not be proven for long is no longer given up. */
export const TRIES_GO_ON: Migration = {
  version: 7,
  name: 'tries go on',
  sql: (s) =>
    `comment on column ${s}.windows.tries is 'Runs in a row that could not prove this window. After five it is tried once a day; the watermark waits before it.';`,
};

/** What is written beside the watermark: complete since when, and of what. */
export const PROMISE_IN_FULL: Migration = {
  version: 12,
  name: 'the promise in full',
  sql: (s) =>
    `comment on column ${s}.cursors.complete_through is 'The watermark: every event from since up to here that the filters let through is in the sink, except records in quarantine. Null: nothing proven yet.';`,
};

/** What a server does with its parameters is more than three columns by now. */
export const PROFILE_FACTS: Migration = {
  version: 11,
  name: 'profile facts',
  sql: (s) => `
alter table ${s}.profiles add column facts jsonb not null default '{}';
comment on column ${s}.profiles.facts is 'Further habits of the server, as the reader noticed them. Hints that save requests; no proof rests on them.';
`,
};

/** What each sink was found to hold: the ledger says what was read, and somebody may change a sink. */
export const ATTESTATIONS: Migration = {
  version: 15,
  name: 'what the sinks hold',
  sql: (s) => `
create table ${s}.attestations (
  source     text not null,
  stream     text not null,
  sink       text not null,
  identity   text not null,
  counted_at timestamptz,
  next_at    timestamptz,
  next_rows  bigint not null default 0,
  pruned_to  timestamptz,
  primary key (source, stream, sink)
);
comment on table ${s}.attestations is 'When each sink was last asked what it holds, and how it identified itself then.';
comment on column ${s}.attestations.identity is 'Changes when somebody replaces or restores what the sink holds; then all its rows are counted.';
comment on column ${s}.attestations.counted_at is 'When the rows of every certified window were last compared with the ledger. Null: not yet.';
comment on column ${s}.attestations.next_at is 'A count is under way, newest first: windows from here on have been counted. Null: none is.';
comment on column ${s}.attestations.next_rows is 'Rows counted so far of the window that next_at lies in.';
comment on column ${s}.attestations.pruned_to is 'Events before this were deleted, because the config keeps no older ones.';

create table ${s}.foreign_rows (
  source   text not null,
  stream   text not null,
  sink     text not null,
  start_at timestamptz not null,
  end_at   timestamptz not null,
  what     text not null,
  found_at timestamptz not null default now(),
  primary key (source, stream, sink, start_at)
);
alter table ${s}.lake_tracks
  add column listed_at timestamptz,
  add column changes integer not null default 0,
  add column strays jsonb not null default '[]';
comment on column ${s}.lake_tracks.listed_at is 'When the files were last listed and compared with lake_files.';
comment on column ${s}.lake_tracks.changes is 'How often a listing found files that were not as they had been written.';
comment on column ${s}.lake_tracks.strays is 'Files of others among ours, as of the last listing.';

comment on table ${s}.foreign_rows is 'Windows of a sink that hold rows of another writer. They are not certified until those rows are gone.';

create table ${s}.iceberg_heads (
  sink       text not null,
  table_name text not null,
  table_uuid text not null,
  snapshot   text,
  location   text not null,
  changes    integer not null default 0,
  primary key (sink, table_name)
);
comment on table ${s}.iceberg_heads is 'The version of each Iceberg table that Tributary itself left last: while the catalog names the same one, nobody else has changed the table.';
comment on column ${s}.iceberg_heads.changes is 'How often another program was found to have changed the table.';

-- The table belongs to the catalog, and may not be there.
create function ${s}.iceberg_location(catalog text, namespace text, name text) returns text language plpgsql stable as $body$
begin
  if not exists (select from pg_catalog.pg_tables where schemaname = 'public' and tablename = 'iceberg_tables') then
    return null;
  end if;
  return (select t.metadata_location from public.iceberg_tables t
    where t.catalog_name = $1 and t.table_namespace = $2 and t.table_name = $3);
end $body$;
comment on function ${s}.iceberg_location is 'Where the SQL catalog says that the metadata of an Iceberg table is.';
`,
};
