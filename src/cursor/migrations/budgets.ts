import type { Migration } from '../migrate.ts';
import { quoteIdent } from '../sql.ts';

/** One budget per key, over all processes. */
export const BUDGET_TABLES: Migration = {
  version: 3,
  name: 'budgets shared by all processes',
  sql: (schema) => {
    const s = quoteIdent(schema);
    return `
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
`;
  },
};

/** The rules moved from SQL to the processes: the row keeps their state as one value, and shows what people look for. */
export const BUDGET_STATE: Migration = {
  version: 10,
  name: 'the state of a budget as one value',
  sql: (schema) => {
    const s = quoteIdent(schema);
    return `
alter table ${s}.budgets
  drop column careful_until, drop column next_at, drop column left_at, drop column grants, drop column widening, drop column era,
  drop column pauses_in_vain, drop column probing, drop column alone_until, drop column waits_until, drop column passed_over,
  add column state jsonb not null default '{}';
comment on column ${s}.budgets.state is 'When the next request of any process may leave, and why. Times are milliseconds of this database''s clock.';
comment on column ${s}.budgets.per_second is 'The rate in force: the most careful one that was asked with of late.';
`;
  },
};
