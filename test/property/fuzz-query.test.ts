import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkFilters, checkParams } from '../../src/api/filters.ts';
import { PARAMS } from '../../src/api/params.ts';
import { STREAM_NAMES } from '../../src/model/streams.ts';

/** Filters of any shape are sent exactly or refused with their place. */

const KNOWN = PARAMS.map(({ name }) => name);
const name = fc.oneof(
  fc.constantFrom(...KNOWN, '__proto__', 'constructor', 'toString', ''),
  fc.string({ maxLength: 8 }),
);
const value = fc.oneof(
  fc.constantFrom(
    'US',
    '-US',
    'US,CA',
    '-US,-CA',
    'US,-CA',
    '--US',
    '',
    ' ',
    '\0',
    '\ud800',
    'true',
    '2026-01-01',
    "metadata['a']:'b'",
  ),
  fc.string({ unit: 'binary' }),
  fc.double(),
  fc.bigInt(),
  fc.boolean(),
  fc.jsonValue(),
  fc.array(fc.string(), { maxLength: 4 }),
);
const filters = fc.oneof(
  fc.array(fc.tuple(name, value), { maxLength: 5 }).map((entries) => Object.fromEntries(entries)),
  fc.anything(),
);

describe.each(STREAM_NAMES)('filters of %s', (stream) => {
  it('are sent exactly or refused, without other errors', () => {
    fc.assert(
      fc.property(filters, (raw) => {
        const { query, faults } = checkFilters(stream, raw);
        for (const [key, text] of Object.entries(query)) {
          expect(KNOWN).toContain(key);
          expect(['page', 'limit', 'start', 'end', 'sortOrder']).not.toContain(key);
          expect(text.trim()).not.toBe('');
          expect(text).not.toMatch(/[\p{Cc}\p{Surrogate}]/u);
          // The service decodes what was sent.
          expect(new URLSearchParams(new URLSearchParams({ [key]: text }).toString()).get(key)).toBe(text);
        }
        for (const { message } of faults) expect(message).toMatch(/\S/);
        const asked = typeof raw === 'object' && raw !== null && !Array.isArray(raw) ? Object.keys(raw).length : 0;
        if (faults.length === 0) expect(Object.keys(query).length).toBe(asked);
      }),
      { numRuns: 700 },
    );
  });
});

it('a request of any shape is parsed or refused', () => {
  fc.assert(
    fc.property(fc.oneof(filters, fc.constant(undefined)), (raw) => {
      expect(() => checkParams(raw)).not.toThrow();
    }),
    { numRuns: 700 },
  );
});
