import type { Migration } from '../migrate.ts';
import { quoteIdent } from '../sql.ts';

/** What the worker keeps: when streams are due, what is parked, whom it told, and backfills. */
export const WORKER_TABLES: Migration = {
  version: 5,
  name: 'schedules, parked streams, incidents, backfills',
  sql: (schema) => {
    const s = quoteIdent(schema);
    return `
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
`;
  },
};
