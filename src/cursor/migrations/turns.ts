import type { Migration } from '../migrate.ts';
import { quoteIdent } from '../sql.ts';

/** What completeness was proven for, and how long work gives way to short. */
export const TURNS: Migration = {
  version: 2,
  name: 'filters that completeness was proven under, leases that give way',
  sql: (schema) => {
    const s = quoteIdent(schema);
    return `
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
`;
  },
};
