import { quoteIdent } from '../../cursor/sql.ts';
import type { Kind } from '../../model/columns.ts';

/** How Postgres holds each kind of column. */
export const POSTGRES_TYPES: Readonly<Record<Kind, string>> = {
  text: 'text',
  integer: 'bigint',
  number: 'numeric',
  boolean: 'boolean',
  timestamp: 'timestamptz',
  json: 'jsonb',
};

/** How `format_type` spells what we call `timestamptz`. */
const TIMESTAMPTZ = 'timestamp with time zone';

export const formatOf = (type: string): string => (type === POSTGRES_TYPES.timestamp ? TIMESTAMPTZ : type);

export const kindOfFormat = (format: string): Kind | undefined =>
  (Object.keys(POSTGRES_TYPES) as Kind[]).find((kind) => formatOf(POSTGRES_TYPES[kind]) === format);

/**
 * How a column's values are carried into a wider type without loss; undefined where nothing needs to be done, or where somebody has
 * given the column a type of their own.
 */
export function widening(column: string, from: string, to: string): string | undefined {
  const name = quoteIdent(column);
  const asText =
    from === TIMESTAMPTZ ? `to_char(${name} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')` : `${name}::text`;
  const isOurs = ['bigint', 'numeric', 'boolean', TIMESTAMPTZ, 'text'].includes(from);
  if (!isOurs || from === to) return undefined;
  if (to === 'numeric' && from === 'bigint') return `${name}::numeric`;
  if (to === 'text' && from !== 'text') return asText;
  if (to === 'jsonb') return from === TIMESTAMPTZ ? `to_jsonb(${asText})` : `to_jsonb(${name})`;
  return undefined;
}
