import type { Kind } from '../../model/columns.ts';

/** How Postgres holds each kind of column. */
export const POSTGRES_TYPES: Readonly<Record<Kind, string>> = {
  text: 'text',
  integer: 'bigint',
  boolean: 'boolean',
  timestamp: 'timestamptz',
  json: 'jsonb',
};
