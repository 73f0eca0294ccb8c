import type { Value } from '../../src/model/columns.ts';
import type { StreamName } from '../../src/model/streams.ts';
import { alike } from './corpus.ts';

/** The outcome of every record of the corpus. test/corpus/outcomes.md is generated from it; `records.test.ts` checks it. */
export interface RecordTrap {
  outcome: 'stored' | 'flagged' | 'quarantined';
  /** For readers; the stored reason of a quarantined record. */
  means: string;
  /** Columns as stored in Postgres and in Parquet. */
  holds?: Readonly<Record<string, Value | RegExp>>;
  /** `leads` by default. */
  stream?: StreamName;
}

const at = (iso: string): number => Date.parse(iso);
const nested = (levels: number): object => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
const HASH = /^h_[0-9a-f]{32}$/;

const NO_TIME = 'the record has no time';
const NO_IDENTITY = 'the record has no identity';
const NO_OBJECT = 'the record is not an object';
const TOO_DEEP = 'the record is nested deeper than 500 levels';

/** Outcomes of several traps. */
const AS_IT_CAME = { outcome: 'stored', means: 'as it came' } as const;
const ANY_TEXT = { outcome: 'stored', means: 'a text like any other' } as const;
const MENDED = { outcome: 'flagged', means: 'U+FFFD in its place, and `_extra._mended` names the column' } as const;
const MISFIT = {
  outcome: 'flagged',
  means: 'the column is empty, the value is in `_extra`, the type mismatch is counted',
} as const;
const ROUNDED = {
  outcome: 'flagged',
  means: 'the nearest whole number; the value is in `_extra`, the type mismatch is counted',
} as const;

export const RECORDS: Readonly<Record<string, RecordTrap>> = {
  ...alike(
    `time-iso-without-milliseconds time-with-offset time-blank-for-t time-lower-case time-epoch-seconds
    time-epoch-milliseconds time-epoch-microseconds time-epoch-nanoseconds time-epoch-as-text time-javascript-date
    time-http-date`,
    { outcome: 'stored', means: 'one UTC instant', holds: { timestamp: at('2026-11-14T10:30:00Z') } },
  ),
  'time-leap-second': {
    outcome: 'stored',
    means: 'the next minute, as in every clock that we feed',
    holds: { timestamp: at('2026-11-14T10:30:00Z') },
  },
  'time-date-only': { outcome: 'stored', means: 'midnight, UTC', holds: { timestamp: at('2026-11-14T00:00:00Z') } },
  'time-hour-24': {
    outcome: 'stored',
    means: 'the end of the day before',
    holds: { timestamp: at('2026-11-14T00:00:00Z') },
  },
  'time-microseconds': {
    outcome: 'stored',
    means: 'kept to the microsecond',
    holds: { timestamp: at('2026-11-14T10:30:00Z') + 123.456 },
  },
  'time-only-in-the-click': {
    outcome: 'stored',
    means: "a click's own time says the same",
    holds: { timestamp: at('2026-11-14T10:30:00Z'), event_id: 'clk_1' },
    stream: 'clicks',
  },
  'time-in-the-future': {
    outcome: 'stored',
    means: 'as it came; it never moves the watermark',
    holds: { timestamp: at('2027-06-01T00:00:00Z') },
  },
  'time-long-ago': {
    outcome: 'stored',
    means: 'as it came; it proves nothing about what lies between',
    holds: { timestamp: at('1969-07-20T20:17:40Z') },
  },
  ...alike(
    `time-null time-empty time-missing time-impossible-day time-month-13 time-in-words time-object time-infinite
    time-year-10000 time-year-0 time-offset-of-99-hours time-small-number`,
    { outcome: 'quarantined', means: NO_TIME },
  ),
  ...alike('id-missing id-empty id-null', {
    outcome: 'stored',
    means: 'under a hash of what never changes in it',
    holds: { event_id: HASH },
  }),
  'id-missing-and-nothing-tells': { outcome: 'quarantined', means: NO_IDENTITY },
  'id-number': { outcome: 'stored', means: 'its digits are the id', holds: { event_id: '42' } },
  'id-beyond-2-to-the-53': {
    outcome: 'stored',
    means: 'its digits are the id, every one of them',
    holds: { event_id: '9007199254740993' },
  },
  'id-huge': {
    outcome: 'flagged',
    means: 'under a hash of the id, which is kept in `_extra`; the type mismatch is counted',
    holds: { event_id: HASH },
  },
  'id-with-quotes': { ...ANY_TEXT, holds: { event_id: `'; drop table attribution.leads; --"` } },
  'id-with-slashes': {
    outcome: 'stored',
    means: 'a text like any other: no path is made of it',
    holds: { event_id: '../../etc/passwd' },
  },
  'id-with-line-breaks': { ...ANY_TEXT, holds: { event_id: 'a\tb\nc\\.' } },
  'id-of-another-alphabet': { ...ANY_TEXT, holds: { event_id: '\u202eev\u0301\u{1f600}' } },
  'id-object': {
    outcome: 'flagged',
    means: 'under a hash; what came is in `_extra`',
    holds: { event_id: HASH, _extra: { eventId: { id: 'ev_1' } } },
  },
  ...alike('id-with-nul id-with-half-a-character', {
    ...MENDED,
    holds: { event_id: 'ev\ufffd_1', _extra: { _mended: ['event_id'] } },
  }),
  'id-twice-on-a-page': { outcome: 'stored', means: 'once; the last one wins', holds: { event_name: 'last' } },
  ...alike(`record-null record-list record-text record-number record-list-of-depth-100000`, {
    outcome: 'quarantined',
    means: NO_OBJECT,
  }),
  ...alike('record-empty record-is-an-error', { outcome: 'quarantined', means: NO_TIME }),
  ...alike('click-list click-text', {
    outcome: 'stored',
    means: 'whole, in a column of its own: `click`',
    holds: { click_id: null },
  }),
  'click-missing': { outcome: 'stored', means: 'the columns of the click are empty', holds: { click_id: null } },
  'link-null': { outcome: 'stored', means: 'the columns of the link are empty', holds: { link_id: null } },
  'link-text': { outcome: 'stored', means: 'whole, in a column of its own: `link`', holds: { link_id: null } },
  'customer-list': {
    outcome: 'stored',
    means: 'whole, in a column of its own: `customer`',
    holds: { customer_id: null },
  },
  'customer-empty': { outcome: 'stored', means: 'the columns of the customer are empty', holds: { customer_id: null } },
  'sale-number': {
    outcome: 'stored',
    means: 'whole, in a column of its own: `sale`',
    holds: { sale_amount: null },
    stream: 'sales',
  },
  'all-null': {
    outcome: 'stored',
    means: 'nothing is known but id and time',
    holds: { event_id: 'ev_1', event_name: null, link_id: null },
  },
  'all-empty': {
    outcome: 'stored',
    means: 'empty texts stay empty texts; elsewhere "" is none',
    holds: { event_name: '', link_expires_at: null, click_timestamp: null },
  },
  'key-twice': { outcome: 'stored', means: 'the last one wins, as everywhere in JSON', holds: { event_name: 'last' } },
  'key-proto': { outcome: 'stored', means: 'a field like any other', holds: { proto___30e2af38: { isAdmin: true } } },
  'key-constructor': {
    outcome: 'stored',
    means: 'a field like any other',
    holds: { constructor: { prototype: { isAdmin: true } } },
  },
  'key-empty': { outcome: 'stored', means: 'a column named by a digest', holds: { field_e3b0c442: 'nameless' } },
  'key-with-a-dot': {
    outcome: 'stored',
    means: 'a key, not a path',
    holds: { click_id: 'clk_1', click__id_1ddb80fa: 'clk_2' },
  },
  'key-with-quotes': {
    outcome: 'stored',
    means: 'a column whose name is made safe',
    holds: { a___drop_table_attribution_leads_____4aab6a81: 'x' },
  },
  'key-of-500-characters': { outcome: 'stored', means: 'a column whose name is cut and told apart by a digest' },
  'key-of-a-system-column': {
    outcome: 'stored',
    means: 'a column beside, told apart by a digest',
    holds: { xmin_eafb2f50: 7 },
  },
  'key-of-our-own': {
    outcome: 'stored',
    means: 'a column beside: bookkeeping is ours alone',
    holds: { source_f5b96437: 'evil', run_id_b1fc5b5b: 'evil' },
  },
  'unknown-field': { outcome: 'stored', means: 'becomes a column', holds: { click_ua: 'curl/8' } },
  'unknown-event': { ...AS_IT_CAME, holds: { event: 'page.view' } },
  'unknown-trigger': { ...AS_IT_CAME, holds: { click_trigger: 'deeplink' } },
  'country-unknown': { ...AS_IT_CAME, holds: { click_country: 'Unknown', country: 'Unknown' } },
  'metadata-text': { outcome: 'stored', means: 'as it came: a JSON text', holds: { metadata: '{"a":1}' } },
  'metadata-list': { ...AS_IT_CAME, holds: { metadata: [1, null, 'x'] } },
  'metadata-number': { ...AS_IT_CAME, holds: { metadata: 7 } },
  'metadata-of-a-megabyte': { ...AS_IT_CAME, holds: { metadata: { blob: 'x'.repeat(1_048_576) } } },
  'metadata-60-levels-deep': { ...AS_IT_CAME, holds: { metadata: nested(60) } },
  'metadata-600-levels-deep': { outcome: 'quarantined', means: TOO_DEEP },
  'metadata-with-nul': { ...MENDED, holds: { metadata: { 'a\ufffdb': 'c\ufffdd' } } },
  'metadata-with-half-a-character': { ...MENDED, holds: { metadata: { a: '\ufffd' } } },
  'metadata-with-copy-marks': { ...AS_IT_CAME, holds: { metadata: { a: '\\.\n\\N\t\\\\' } } },
  'metadata-beyond-2-to-the-53': {
    outcome: 'stored',
    means: 'every digit is kept',
    holds: { metadata: { n: 9_007_199_254_740_993n } },
  },
  'metadata-with-1e400': {
    outcome: 'stored',
    means: 'as a text: no number of ours holds it',
    holds: { metadata: { n: '1e400' } },
  },
  'metadata-with-proto': { ...AS_IT_CAME, holds: { metadata: JSON.parse('{"__proto__": {"isAdmin": true}}') } },
  'amount-as-text': {
    outcome: 'stored',
    means: 'a whole number is one, also in quotes',
    holds: { sale_amount: 1999 },
    stream: 'sales',
  },
  'amount-negative': {
    outcome: 'stored',
    means: 'as it came: a refund',
    holds: { sale_amount: -500 },
    stream: 'sales',
  },
  'amount-exponent': {
    outcome: 'stored',
    means: 'a whole number in short form',
    holds: { sale_amount: 1000 },
    stream: 'sales',
  },
  'amount-beyond-2-to-the-53': {
    outcome: 'stored',
    means: 'every digit is kept',
    holds: { sale_amount: 9_007_199_254_740_993n },
    stream: 'sales',
  },
  'amount-null': { outcome: 'stored', means: 'none', holds: { sale_amount: null, _extra: null }, stream: 'sales' },
  'amount-fraction': { ...ROUNDED, holds: { sale_amount: 20, _extra: { sale: { amount: 19.99 } } }, stream: 'sales' },
  'amount-fraction-as-text': {
    ...ROUNDED,
    holds: { sale_amount: 20, _extra: { sale: { amount: '19.99' } } },
    stream: 'sales',
  },
  'amount-beyond-int64': {
    ...MISFIT,
    holds: { sale_amount: null, _extra: { sale: { amount: 99_999_999_999_999_999_999n } } },
    stream: 'sales',
  },
  'amount-in-words': {
    ...MISFIT,
    holds: { sale_amount: null, _extra: { sale: { amount: 'a lot' } } },
    stream: 'sales',
  },
  'amount-list': { ...MISFIT, holds: { sale_amount: null, _extra: { sale: { amount: [1999] } } }, stream: 'sales' },
  'amount-infinite': {
    ...MISFIT,
    holds: { sale_amount: null, _extra: { sale: { amount: '1e999' } } },
    stream: 'sales',
  },
  'boolean-as-text': { outcome: 'stored', means: 'true', holds: { click_qr: true } },
  'boolean-in-words': { ...MISFIT, holds: { click_qr: null, _extra: { click: { qr: 'yes' } } } },
  'text-number': { outcome: 'stored', means: 'its digits', holds: { event_name: '404' } },
  'text-object': { ...MISFIT, holds: { event_name: null, _extra: { eventName: { en: 'Sign up' } } } },
  ...alike('text-with-nul text-with-half-a-character', {
    ...MENDED,
    holds: { event_name: 'Sign\ufffdup', _extra: { _mended: ['event_name'] } },
  }),
  'text-with-copy-marks': { ...AS_IT_CAME, holds: { event_name: '\\.\n\\N\tx' } },
  'text-with-byte-order-mark': { ...AS_IT_CAME, holds: { event_name: '\ufeffSign up' } },
  'text-of-a-megabyte': { ...AS_IT_CAME, holds: { click_url: `https://x.example/${'a'.repeat(1_048_576)}` } },
  'text-with-markup': {
    outcome: 'stored',
    means: 'as it came: whoever shows it must escape it',
    holds: { event_name: '<script>alert(1)</script>' },
  },
  'text-like-a-formula': {
    outcome: 'stored',
    means: 'as it came: spreadsheets may run it',
    holds: { event_name: '=HYPERLINK("https://x.example")' },
  },
  'ip-empty': { outcome: 'stored', means: 'an empty text', holds: { click_ip: '', ip: '' } },
  'ip-garbage': {
    outcome: 'stored',
    means: 'as it came; `ip: truncate` drops it',
    holds: { click_ip: 'not an address' },
  },
  'link-password': {
    outcome: 'stored',
    means: 'without the password, unless the config says `linkPassword: keep`',
    holds: { link_password: null, _extra: null },
  },
  'link-date-impossible': {
    ...MISFIT,
    holds: { link_created_at: null, _extra: { link: { createdAt: '2026-02-30' } } },
  },
  'alias-contradicts': {
    outcome: 'flagged',
    means: 'the canonical field wins, the alias is in `_extra`, the contradiction is counted',
    holds: { click_country: 'DE', country: 'DE', _extra: { country: 'FR' } },
  },
  'alias-alone': {
    outcome: 'stored',
    means: 'the canonical column is filled from it',
    holds: { click_id: 'clk_9', click_country: 'FR', country: 'FR' },
  },
  'alias-of-another-kind': {
    outcome: 'flagged',
    means: 'the canonical field wins, the alias is in `_extra`',
    holds: { click_country: 'DE', _extra: { country: ['FR'] } },
  },
};
