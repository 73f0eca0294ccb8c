import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EARLIEST, LATEST, parseInstant, toIso } from '../../src/model/instant.ts';

/** Times in all forms, and invalid ones. */

const instant = fc.integer({ min: EARLIEST, max: LATEST });
const whole = instant.map((ms) => Math.floor(ms / 1000) * 1000);
const pieces = fc
  .array(
    fc.constantFrom(
      '2026',
      '-',
      '02',
      '30',
      'T',
      ' ',
      '24',
      ':',
      '60',
      '.',
      '123456789',
      'Z',
      '+',
      '99:99',
      'GMT',
      'Mon',
      'Nov',
      ',',
      'e9',
      '\0',
      '٣',
    ),
    { maxLength: 14 },
  )
  .map((parts) => parts.join(''));

describe('parseInstant', () => {
  it('gives a valid instant or nothing, for any input', () => {
    const anything = fc.oneof(pieces, fc.string(), fc.double(), fc.bigInt(), fc.jsonValue(), fc.constant(undefined));
    fc.assert(
      fc.property(anything, (value) => {
        const found = parseInstant(value);
        if (found === undefined) return;
        expect(found >= EARLIEST && found <= LATEST + 1).toBe(true);
        expect(parseInstant(toIso(found))).toBeCloseTo(found, 2);
      }),
      { numRuns: 3000 },
    );
  });

  it('reads one instant from all of its forms', () => {
    fc.assert(
      fc.property(whole, fc.integer({ min: -14 * 60, max: 14 * 60 }), (ms, offset) => {
        const iso = new Date(ms).toISOString();
        fc.pre(ms + offset * 60_000 >= EARLIEST && ms + offset * 60_000 <= LATEST);
        const sign = offset < 0 ? '-' : '+';
        const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60].map((n) =>
          String(n).padStart(2, '0'),
        );
        const local = new Date(ms + offset * 60_000).toISOString().slice(0, 19);
        for (const form of [
          iso,
          iso.replace('.000', ''),
          iso.replace('T', ' ').slice(0, 19),
          `${local}${sign}${hours}:${minutes}`,
        ]) {
          expect([form, parseInstant(form)]).toEqual([form, ms]);
        }
        if (new Date(ms).getUTCFullYear() >= 1000) expect(parseInstant(new Date(ms).toUTCString())).toBe(ms);
      }),
      { numRuns: 1000 },
    );
  });

  it('rejects days that are not in the calendar', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9999 }),
        fc.integer({ min: 0, max: 19 }),
        fc.integer({ min: 0, max: 39 }),
        (year, month, day) => {
          const date = new Date(0);
          date.setUTCFullYear(year, month - 1, day);
          const isReal = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
          const text = [
            String(year).padStart(4, '0'),
            String(month).padStart(2, '0'),
            String(day).padStart(2, '0'),
          ].join('-');
          for (const form of [text, `${text}T10:30:00.000Z`])
            expect([form, parseInstant(form) !== undefined]).toEqual([form, isReal]);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
