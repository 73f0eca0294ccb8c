import type { Migration } from '../migrate.ts';
import { quoteIdent } from '../sql.ts';

/** Who changed what, and which service stands behind the name of a source. */
export const AUDIT_TABLES: Migration = {
  version: 8,
  name: 'audit trail, identity of sources',
  sql: (schema) => {
    const s = quoteIdent(schema);
    return `
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
`;
  },
};
