import fc from 'fast-check';
import { objectOf } from './odd-records.ts';

/** Field names that no service should send; none is declared. */
export const HOSTILE_NAMES: Readonly<Record<string, readonly string[]>> = {
  nul: ['a\0b'],
  'nul-alone': ['\0'],
  'half-a-character': ['\ud800'],
  'other-half': ['x\udfffy'],
  quotes: ['";drop table attribution.leads;--', "'", '`', '$$', '\\'],
  'text-of-an-escape': ['\\u0000', '\\ud800', '\\.'],
  'ten-thousand-letters': ['n'.repeat(10_000)],
  'ten-thousand-letters-twice': [`${'n'.repeat(9_999)}x`, `${'n'.repeat(9_999)}y`],
  empty: ['', ' ', '\t', '\n', '\u200b'],
  prototype: ['__proto__', 'constructor', 'toString', 'hasOwnProperty'],
  bidi: ['\u202eevil', '\u2066x\u2069', '\u061c'],
  control: ['\u001b[2J', '\r\nx', '\u0007'],
  'equal-after-cleaning': ['k\0', 'k\ud800', 'k\udc00', 'k\ufffd'],
  'equal-when-lower-case': ['uTm', 'utm', 'UTM', 'u_tm', 'u.tm', 'u tm'],
  'equal-in-unicode': ['\u00e9', 'e\u0301', '\uff45\u0301'],
  'ours-in-another-case': ['Event_ID', 'EVENT_ID', 'Timestamp', '_SOURCE', '_Extra', '_synced_AT', 'Link_Id'],
  'ours-for-notes': ['_mended', '_extra', '_missing_since'],
  'of-the-database': ['ctid', 'xmin', 'select', 'table', 'oid'],
  'of-the-partitions': ['date', 'hour', 'DATE'],
  paths: ['../../etc/passwd', 'a/b', 'a.b.c', 'click.ua', '.', '..', 'link.'],
  'formulas-and-markup': ['=1+1', '<script>', '{{x}}', '%s'],
};

/** A lead with every name in every possible place: beside the columns, among them, and inside values. */
export function hostileRecord(id: string, names: readonly string[], at: number): object {
  const fields = (where: string): object => objectOf(names.map((name, i) => [name, `${where} ${i}`]));
  return objectOf([
    ...names.map((name, i) => [name, `top ${i}`] as const),
    ['eventId', id],
    ['timestamp', new Date(at).toISOString()],
    ['click', objectOf([...Object.entries(fields('click')), ['id', `click of ${id}`]])],
    ['link', objectOf([...Object.entries(fields('link')), ['id', 'lnk_1']])],
    ['customer', fields('customer')],
    ['metadata', objectOf([['inside', [fields('list')]], ...Object.entries(fields('metadata'))])],
    ['unknown', fields('unknown')],
  ]);
}

/** The prefixes of all values of `hostileRecord`, which must be found in its row. */
export const PLACES = ['top', 'click', 'link', 'customer', 'list', 'metadata', 'unknown'] as const;

/** Any of them, or a mixture with arbitrary text. */
export const hostileName: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...Object.values(HOSTILE_NAMES).flat()),
  fc
    .tuple(fc.constantFrom(...Object.values(HOSTILE_NAMES).flat()), fc.string({ unit: 'binary', maxLength: 4 }))
    .map(([name, text]) => `${text}${name}`),
);
