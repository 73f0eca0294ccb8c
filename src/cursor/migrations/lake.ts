/** What the sinks that write files keep in the state. */
export const LAKE_TABLES = (s: string): string => `
create table if not exists ${s}.lake_tracks (
  id integer generated always as identity primary key,
  sink text not null, stream text not null, source text not null,
  unsettled boolean not null,
  unique (sink, stream, source)
);
alter table ${s}.lake_tracks
  add column if not exists listed_at timestamptz,
  add column if not exists changes integer not null default 0,
  add column if not exists strays jsonb not null default '[]',
  add column if not exists indexed_from integer;
comment on table ${s}.lake_tracks is 'One row per stream of a source in a lake of Parquet files.';
comment on column ${s}.lake_tracks.unsettled is 'Files are being replaced, or were when a writer was stopped: they are compared with lake_files before anything is written again.';
comment on column ${s}.lake_tracks.listed_at is 'When the files were last listed and compared with lake_files.';
comment on column ${s}.lake_tracks.changes is 'How often a listing found files that were not as they had been written.';
comment on column ${s}.lake_tracks.strays is 'Files of others among ours, as of the last listing.';
comment on column ${s}.lake_tracks.indexed_from is 'The first partition whose events are in lake_index. Events before it are looked for in the file of their day. Null: none is in it yet.';

create table if not exists ${s}.lake_files (
  track integer not null,
  partition integer not null,
  identity text not null,
  rows bigint not null,
  oldest timestamptz, newest timestamptz,
  holds_before boolean not null,
  written_at timestamptz not null default now(),
  primary key (track, partition)
);
comment on table ${s}.lake_files is 'The files of a lake as they were last written: a file that differs was changed by somebody else, or by a commit that was cut short.';
comment on column ${s}.lake_files.holds_before is 'The file still holds its version before this one, for readers that had just opened it. It is made anew without it when the partition has been quiet.';
comment on column ${s}.lake_files.partition is 'The first hour of the partition, counted from 1970.';

-- Before 0.1.0 there was an index of all events for ever. A process of such a version that still runs must fail, and not take an empty
-- index for an empty lake: hence the other name.
drop table if exists ${s}.lake_keys;
create table if not exists ${s}.lake_index (
  track integer not null,
  key bigint not null,
  partition integer not null,
  primary key (track, key, partition)
);
create index if not exists lake_index_by_partition on ${s}.lake_index (track, partition);
comment on table ${s}.lake_index is 'Which partition each event was written to, as far back as the stream is read again. The key is a hash of the event id; the file has the last word.';

create table if not exists ${s}.iceberg_heads (
  sink text not null, table_name text not null,
  table_uuid text not null,
  snapshot text,
  location text not null,
  changes integer not null default 0,
  primary key (sink, table_name)
);
comment on table ${s}.iceberg_heads is 'The version of each Iceberg table that Tributary itself left last: while the catalog names the same one, nobody else has changed the table.';
comment on column ${s}.iceberg_heads.changes is 'How often another program was found to have changed the table.';

-- The table belongs to the catalog, and may not be there.
create or replace function ${s}.iceberg_location(catalog text, namespace text, name text) returns text language plpgsql stable as $body$
begin
  if not exists (select from pg_catalog.pg_tables where schemaname = 'public' and tablename = 'iceberg_tables') then
    return null;
  end if;
  return (select t.metadata_location from public.iceberg_tables t
    where t.catalog_name = $1 and t.table_namespace = $2 and t.table_name = $3);
end $body$;
comment on function ${s}.iceberg_location is 'Where the SQL catalog says that the metadata of an Iceberg table is.';`;
