import type { Migration } from '../migrate.ts';
import { quoteIdent } from '../sql.ts';

/** The newest runs of all streams together, which a page shows: without it they would be found by reading the whole history. */
export const HISTORY_BY_TIME: Migration = {
  version: 6,
  name: 'the history by time',
  sql: (schema) => `create index runs_by_time on ${quoteIdent(schema)}.runs (started_at desc, id desc);`,
};
