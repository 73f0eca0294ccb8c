import type { Migration } from '../../../src/cursor/migrations/migrate.ts';

/** Which file an event of a lake is in. */
export const LAKE_TABLES: Migration = {
  version: 4,
  name: 'where events live in a lake',
  sql: (s) => `
create table ${s}.lake_tracks (
  id        integer generated always as identity primary key,
  sink      text not null,
  stream    text not null,
  source    text not null,
  unsettled boolean not null,
  unique (sink, stream, source)
);
comment on table ${s}.lake_tracks is 'One row per stream of a source in a lake of Parquet files.';
comment on column ${s}.lake_tracks.unsettled is 'Files are being replaced, or were when a writer was stopped: they are compared with lake_files before anything is written again.';

create table ${s}.lake_files (
  track        integer not null,
  partition    integer not null,
  identity     text not null,
  rows         bigint not null,
  oldest       timestamptz,
  newest       timestamptz,
  holds_before boolean not null,
  written_at   timestamptz not null default now(),
  primary key (track, partition)
);
comment on table ${s}.lake_files is 'The files of a lake as they were last written: a file that differs was changed by somebody else, or by a commit that was cut short.';
comment on column ${s}.lake_files.holds_before is 'The file still holds its version before this one, for readers that had just opened it. It is made anew without it when the partition has been quiet.';
comment on column ${s}.lake_files.partition is 'The first hour of the partition, counted from 1970.';

create table ${s}.lake_keys (
  track     integer not null,
  key       bigint not null,
  partition integer not null,
  primary key (track, key, partition)
);
comment on table ${s}.lake_keys is 'Which partition each event was written to. The key is a hash of the event id; the file has the last word.';
`,
};

/**
 * An index of the events that are read again, where there was one of all events for ever. It is filled from the files by the next commit of
 * each stream. It has another name: a process of an earlier version that still runs must fail, and not take an empty index for an empty lake.
 */
export const EVENT_INDEX: Migration = {
  version: 26,
  name: 'an index of recent events',
  sql: (s) => `
drop table ${s}.lake_keys;
create table ${s}.lake_index (
  track     integer not null,
  key       bigint not null,
  partition integer not null,
  primary key (track, key, partition)
);
create index lake_index_by_partition on ${s}.lake_index (track, partition);
comment on table ${s}.lake_index is 'Which partition each event was written to, as far back as the stream is read again. The key is a hash of the event id; the file has the last word.';

alter table ${s}.lake_tracks add column indexed_from integer;
comment on column ${s}.lake_tracks.indexed_from is 'The first partition whose events are in lake_index. Events before it are looked for in the file of their day. Null: none is in it yet.';
`,
};
