import type { Migration } from '../migrate.ts';
import { quoteIdent } from '../sql.ts';

/** What a server does with its parameters is more than three columns by now. */
export const PROFILE_FACTS: Migration = {
  version: 11,
  name: 'profile facts',
  sql: (schema) => {
    const s = quoteIdent(schema);
    return `
alter table ${s}.profiles add column facts jsonb not null default '{}';
comment on column ${s}.profiles.facts is 'Further habits of the server, as the reader noticed them. Hints that save requests; no proof rests on them.';
`;
  },
};
