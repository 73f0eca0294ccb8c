import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { retryAfterMs } from '../../src/api/service-errors.ts';

const NOW = Date.UTC(2026, 10, 14, 10, 30);
const wait = (retryAfter?: string, reset?: string) => {
  const headers = new Map([
    ['retry-after', retryAfter],
    ['x-ratelimit-reset', reset],
    ['x-ratelimit-limit', '3600'],
  ]);
  return retryAfterMs({ get: (name) => headers.get(name) ?? null }, NOW);
};

describe('Retry-After', () => {
  it.each([
    ['seconds', '7', 7000],
    ['seconds with blanks', ' 7 ', 7000],
    ['half seconds', '1.5', 1500],
    ['zero is one second', '0', 1000],
    ['an hour is two minutes', '3600', 120_000],
    ['an HTTP date', 'Sat, 14 Nov 2026 10:30:08 GMT', 8000],
    ['an ISO date', '2026-11-14T10:30:08Z', 8000],
    ['epoch seconds', String(NOW / 1000 + 9), 9000],
    ['epoch milliseconds', String(NOW + 9500), 9500],
    ['the year 9999', 'Fri, 31 Dec 9999 23:59:59 GMT', 120_000],
    ['the present', 'Sat, 14 Nov 2026 10:30:00 GMT', 1000],
  ])('%s', (_name, header, ms) => {
    expect(wait(header)).toBe(ms);
  });

  it.each([
    undefined,
    '',
    '-5',
    'soon',
    '5s',
    '1e3',
    'NaN',
    'Sat, 14 Nov 2026 10:29:00 GMT',
    String(NOW - 1000),
    '9'.repeat(40),
  ])('%s is ignored: the reset decides, if there is one', (header) => {
    expect(wait(header)).toBeUndefined();
    expect(wait(header, String(NOW / 1000 + 4))).toBe(4000);
    expect(wait(header, String(NOW + 4000))).toBe(4000);
  });

  it.each(['30', '0', '-1', 'x', String(NOW / 1000 - 1)])('ignores the invalid X-RateLimit-Reset %s', (reset) => {
    expect(wait(undefined, reset)).toBeUndefined();
  });

  it('gives undefined or 1 to 120 seconds for any header', () => {
    const header = fc.option(
      fc.oneof(
        fc.string(),
        fc.double().map(String),
        fc.bigInt().map(String),
        fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
        fc.integer({ min: NOW / 1000 - 500, max: NOW / 1000 + 500 }).map(String),
      ),
      { nil: undefined },
    );
    fc.assert(
      fc.property(header, header, (retryAfter, reset) => {
        const ms = wait(retryAfter, reset);
        if (ms !== undefined) expect(ms >= 1000 && ms <= 120_000).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });
});
