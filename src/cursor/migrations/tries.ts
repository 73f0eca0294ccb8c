import type { Migration } from '../migrate.ts';
import { quoteIdent } from '../sql.ts';

/** What is written beside the column: a window that could not be proven for long is no longer given up. */
export const TRIES_GO_ON: Migration = {
  version: 7,
  name: 'tries go on',
  sql: (schema) =>
    `comment on column ${quoteIdent(schema)}.windows.tries is 'Runs in a row that could not prove this window. After five it is tried once a day; the watermark waits before it.';`,
};
