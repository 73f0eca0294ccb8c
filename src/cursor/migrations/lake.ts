import type { Migration } from '../migrate.ts';
import { quoteIdent } from '../sql.ts';

/** Which file an event of a lake is in. */
export const LAKE_TABLES: Migration = {
  version: 4,
  name: 'where events live in a lake',
  sql: (schema) => {
    const s = quoteIdent(schema);
    return `
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
`;
  },
};
