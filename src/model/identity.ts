import { createHash } from 'node:crypto';
import { isNone, type Value } from './columns.ts';
import { bare, stringifyJson } from './json.ts';
import type { Stream } from './streams.ts';

/** Never extend this list: the ids of stored rows are derived from it, and all of them would be stored again as new. */
const INVARIANT = [
  'event',
  'timestamp',
  'event_name',
  'metadata',
  'click_id',
  'click_url',
  'click_country',
  'click_city',
  'click_region',
  'click_device',
  'click_browser',
  'click_os',
  'click_trigger',
  'click_referer_url',
  'click_qr',
  'click_ip',
  'link_id',
  'customer_id',
  'sale_amount',
  'sale_invoice_id',
  'sale_currency',
  'sale_payment_processor',
];

/** Without one of these a hash would only mean "something happened then". */
const DISTINGUISHING = ['event_name', 'click_id', 'link_id', 'customer_id', 'sale_invoice_id'];

/** An id for an event that came without one, or undefined if nothing distinguishes it from others. */
export function identify(stream: Stream, values: readonly Value[]): string | undefined {
  const own = bare();
  stream.columns.forEach((column, i) => {
    const value = values[i] ?? null;
    if (INVARIANT.includes(column.name) && !isEmpty(value)) own[column.name] = value;
  });
  if (!DISTINGUISHING.some((name) => name in own)) return undefined;
  return hashed(stringifyJson(sorted(own)));
}

/** An index entry of Postgres holds 2,700 bytes, and one character may take three. No real id is as long as this. */
export const LONGEST_ID = 600;

/** The id as a key can hold it: one that is too long becomes a hash of itself, the same every time. */
export const fitId = (id: string): string => (id.length <= LONGEST_ID ? id : hashed(id));

const hashed = (text: string): string => `h_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;

/** Services may omit an empty key or not: `metadata` absent, null, {} and [] are the same. */
const isEmpty = (value: Value): boolean =>
  isNone(value) || (typeof value === 'object' && value !== null && Object.keys(value).length === 0);

/** Sorts keys at every depth: the same metadata may come in another order next time. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  const result = bare();
  for (const [key, inner] of entries) result[key] = sorted(inner);
  return result;
}
