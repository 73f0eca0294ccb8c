import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EARLIEST, LATEST, parseInstant, toIso } from '../../src/model/instant.ts';

const AT = Date.UTC(2024, 0, 15, 10, 30, 0, 123);
const SECOND = Date.UTC(2024, 0, 15, 10, 30, 0);
const MICROS = AT + 0.456;

describe('all forms of one instant are equal', () => {
  it.each<[string, unknown]>([
    ['ISO with milliseconds', '2024-01-15T10:30:00.123Z'],
    ['lower-case t and z (RFC 3339 allows them)', '2024-01-15t10:30:00.123z'],
    ['an offset with a colon', '2024-01-15T11:30:00.123+01:00'],
    ['an offset without a colon', '2024-01-15T05:00:00.123-0530'],
    ['an offset of hours alone', '2024-01-15T12:30:00.123+02'],
    ['no zone: UTC', '2024-01-15T10:30:00.123'],
    ['a space instead of T', '2024-01-15 10:30:00.123'],
    ['a space, and UTC in letters', '2024-01-15 10:30:00.123 UTC'],
    ['a space, and GMT in letters', '2024-01-15 10:30:00.123 GMT'],
    ['a comma as decimal separator', '2024-01-15T10:30:00,123Z'],
    ['microseconds of 0', '2024-01-15T10:30:00.123000Z'],
    ['blanks around it', ' 2024-01-15T10:30:00.123Z\n'],
    ['a year of six digits', '+002024-01-15T10:30:00.123Z'],
    ['epoch milliseconds', 1_705_314_600_123],
    ['epoch milliseconds as text', '1705314600123'],
    ['epoch milliseconds as bigint', 1_705_314_600_123n],
    ['epoch seconds with a fraction', 1_705_314_600.123],
    ['epoch seconds with a fraction, as text', '1705314600.123'],
    ['epoch microseconds', 1_705_314_600_123_000],
    ['epoch nanoseconds as bigint', 1_705_314_600_123_000_000n],
    ['epoch nanoseconds as text', '1705314600123000000'],
    ['epoch nanoseconds as a number', Number(1_705_314_600_123_000_000n)],
  ])('%s', (_form, value) => {
    expect(parseInstant(value)).toBe(AT);
  });

  it.each<[string, unknown]>([
    ['ISO without milliseconds', '2024-01-15T10:30:00Z'],
    ['ISO without seconds', '2024-01-15T10:30Z'],
    ['the text of a JavaScript Date', 'Mon Jan 15 2024 10:30:00 GMT+0000 (Coordinated Universal Time)'],
    ['... in another zone', 'Mon Jan 15 2024 11:30:00 GMT+0100 (Central European Standard Time)'],
    ['... west of Greenwich, without the name', 'Mon Jan 15 2024 05:00:00 GMT-0530'],
    ['an HTTP date', 'Mon, 15 Jan 2024 10:30:00 GMT'],
    ['epoch seconds', 1_705_314_600],
    ['epoch seconds as text', '1705314600'],
    ['epoch seconds as bigint', 1_705_314_600n],
  ])('to the second: %s', (_form, value) => {
    expect(parseInstant(value)).toBe(SECOND);
  });

  it.each<[string, unknown]>([
    ['ISO', '2024-01-15T10:30:00.123456Z'],
    ['ISO with nanoseconds, which are cut off', '2024-01-15T10:30:00.123456999Z'],
    ['ISO with an offset', '2024-01-15T12:30:00.123456+02:00'],
    ['epoch seconds', 1_705_314_600.123456],
    ['epoch seconds as text', '1705314600.123456'],
    ['epoch milliseconds', 1_705_314_600_123.456],
    ['epoch microseconds', 1_705_314_600_123_456],
    ['epoch microseconds as text', '1705314600123456'],
    ['epoch nanoseconds as bigint', 1_705_314_600_123_456_789n],
    ['epoch nanoseconds as text', '1705314600123456789'],
  ])('to the microsecond: %s', (_form, value) => {
    expect(parseInstant(value)).toBe(MICROS);
  });

  it('in every form of any millisecond of this century', () => {
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(2000), max: Date.UTC(2100) }), (ms) => {
        const iso = new Date(ms).toISOString();
        const forms = [iso, iso.replace('T', ' ').slice(0, -1), iso.replace('Z', '000Z'), ms, String(ms), BigInt(ms)];
        forms.push(ms * 1000, `${ms}000`, BigInt(ms) * 1_000_000n, ms / 1000);
        expect(new Set(forms.map(parseInstant))).toEqual(new Set([ms]));
        const date = new Date(ms - (ms % 1000));
        expect(parseInstant(date.toUTCString())).toBe(date.getTime());
        expect(parseInstant(String(date))).toBe(date.getTime());
      }),
    );
  });
});

describe('boundaries of the calendar', () => {
  it.each<[string, string]>([
    ['2024-01-15', '2024-01-15T00:00:00.000Z'],
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['2024-02-29T23:59:59.999Z', '2024-02-29T23:59:59.999Z'],
    ['2000-02-29T00:00:00.000Z', '2000-02-29T00:00:00.000Z'],
    ['2024-12-31T23:59:59.999Z', '2024-12-31T23:59:59.999Z'],
    ['2024-01-15T24:00:00Z', '2024-01-16T00:00:00.000Z'],
    ['2024-01-15T24:00:00.000Z', '2024-01-16T00:00:00.000Z'],
    ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
    ['2016-12-31T23:59:60.500Z', '2017-01-01T00:00:00.500Z'],
    ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
    ['1969-12-31T23:59:59.999999Z', '1969-12-31T23:59:59.999999Z'],
    ['0050-06-01T00:00:00.000Z', '0050-06-01T00:00:00.000Z'],
    ['0001-01-01', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('%s', (text, iso) => {
    expect(toIso(parseInstant(text) ?? Number.NaN)).toBe(iso);
  });

  it.each<[string, unknown]>([
    ['seconds', -1_000_000_000],
    ['milliseconds', -1_000_000_000_000],
    ['seconds as text', '-1000000000'],
    ['nanoseconds', -1_000_000_000_000_000_000n],
  ])('before 1970: %s', (_unit, value) => {
    expect(parseInstant(value)).toBe(-1_000_000_000_000);
  });

  it('nanoseconds before 1970 are rounded down, as everywhere', () => {
    expect(parseInstant(-1_000_000_000_000_000_001n)).toBe(-1_000_000_000_000.001);
  });

  it('accept what both ISO text of four digits and Postgres hold: the years 1 to 9999', () => {
    expect(toIso(EARLIEST)).toBe('0001-01-01T00:00:00.000Z');
    expect(toIso(LATEST)).toBe('9999-12-31T23:59:59.999Z');
    expect(parseInstant('0001-01-01T00:00:00+00:01')).toBeUndefined();
    expect(parseInstant('9999-12-31T23:59:59.999-00:01')).toBeUndefined();
  });
});

describe('invalid instants', () => {
  it.each<[string, unknown]>([
    ['30 February, in the usual form', '2024-02-30T00:00:00.000Z'],
    ['29 February 1900', '1900-02-29T00:00:00.000Z'],
    ['hour 25', '2024-01-15T25:00:00.000Z'],
    ['24:30', '2024-01-15T24:30:00Z'],
    ['24:00:00.001', '2024-01-15T24:00:00.001Z'],
    ['minute 60', '2024-01-15T10:60:00.000Z'],
    ['second 61', '2024-01-15T10:30:61.000Z'],
    ['an offset of 99 hours', '2024-01-15T10:30:00+99:00'],
    ['an offset of 60 minutes', '2024-01-15T10:30:00+01:60'],
    ['letters among the digits', '2024-01-15T10:3a:00.000Z'],
    ['a sign among the digits', '2024-01-15T10:30:00.-12Z'],
    ['other marks', '2024/01/15T10:30:00.000Z'],
    ['31 February in words', 'Mon Feb 31 2024 10:30:00 GMT+0000'],
    ['an unknown month', 'Mon Foo 15 2024 10:30:00 GMT+0000'],
    ['year 0', '0000-06-01T00:00:00.000Z'],
    ['a year before Christ', '-000044-03-15T00:00:00Z'],
    ['year 10000', '+010000-01-01T00:00:00Z'],
    ['nanoseconds of year 10000', 253_402_300_800_000_000_000n],
    ['a number too small to be an epoch', 99_999_999],
    ['0', 0],
    ['0 as bigint', 0n],
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['a number beyond all units', 1e300],
    ['digits beyond all units', '99999999999999999999'],
    ['a compact date', '20240115'],
    ['nothing', ''],
    ['blanks', '  '],
    ['a word', 'yesterday'],
    ['null', null],
    ['undefined', undefined],
    ['true', true],
    ['an object', { at: 1_705_314_600 }],
    ['a list', ['2024-01-15']],
  ])('%s', (_what, value) => {
    expect(parseInstant(value)).toBeUndefined();
  });
});

describe('toIso', () => {
  it('prints microseconds only if there are any', () => {
    expect(toIso(AT)).toBe('2024-01-15T10:30:00.123Z');
    expect(toIso(MICROS)).toBe('2024-01-15T10:30:00.123456Z');
    expect(toIso(AT + 0.001)).toBe('2024-01-15T10:30:00.123001Z');
    expect(toIso(-0.5)).toBe('1969-12-31T23:59:59.999500Z');
  });

  it('carries a fraction that rounds up into the millisecond', () => {
    expect(toIso(AT + 0.9998)).toBe('2024-01-15T10:30:00.124Z');
  });

  it.each(['5864-02-29T05:23:27.393Z', '9996-02-29T23:59:59.999Z', '0004-02-29T00:00:00.001Z'])(
    'round-trips milliseconds where microseconds exceed a safe integer: %s',
    (text) => {
      const ms = Date.parse(text);
      expect([parseInstant(text), toIso(ms)]).toEqual([ms, text]);
      if (ms > 1e11 && ms < 1e14) expect(parseInstant(ms)).toBe(ms);
    },
  );

  it('round-trips digits of milliseconds up to the year 5138', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1e11, max: 1e14 - 1 }), (ms) => {
        expect([parseInstant(ms), parseInstant(String(ms))]).toEqual([ms, ms]);
      }),
      { numRuns: 2000 },
    );
  });

  it('round-trips microseconds from 1691 to 2248, also as digits', () => {
    const most = BigInt(2 ** 43) * 1000n - 1n;
    fc.assert(
      fc.property(fc.bigInt({ min: -most, max: most }), (micros) => {
        const instant = Number(micros) / 1000;
        expect(parseInstant(toIso(instant))).toBe(instant);
        if (micros > 10n ** 14n || micros < -(10n ** 14n)) expect(parseInstant(micros)).toBe(instant);
      }),
      { numRuns: 500 },
    );
  });

  it('round-trips milliseconds outside of that', () => {
    expect(parseInstant('2500-01-01T00:00:00.123456Z')).toBe(Date.UTC(2500, 0, 1, 0, 0, 0, 123));
    expect(parseInstant('1500-01-01T00:00:00.123456Z')).toBe(Date.UTC(1500, 0, 1, 0, 0, 0, 123));
  });
});
