import type { Migration } from '../migrate.ts';
import { quoteIdent } from '../sql.ts';

/** A session of the control room is a signed cookie that nobody stores. What is stored is that one was ended before its time. */
export const ENDED_SESSIONS: Migration = {
  version: 9,
  name: 'ended sessions',
  sql: (schema) => {
    const s = quoteIdent(schema);
    return `
create table ${s}.ended_sessions (
  id         text primary key,
  expires_at timestamptz not null
);
comment on table ${s}.ended_sessions is 'Sessions of the control room that were signed out, as digests, until they would have expired anyway.';
`;
  },
};
