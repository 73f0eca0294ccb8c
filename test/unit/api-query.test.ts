import { describe, expect, it } from 'vitest';
import { type EventsQuery, toSearchParams } from '../../src/api/client.ts';
import { ConfigError } from '../../src/model/errors.ts';

const START = Date.UTC(2026, 10, 14);
const query: EventsQuery = {
  stream: 'leads',
  start: START,
  end: START + 3_600_000,
  sortOrder: 'asc',
  page: 1,
  limit: 1000,
  filters: { country: 'US,CA' },
};

describe('the query string', () => {
  it('states everything explicitly, defaults included', () => {
    expect(Object.fromEntries(toSearchParams(query))).toEqual({
      event: 'leads',
      start: '2026-11-14T00:00:00.000Z',
      end: '2026-11-14T01:00:00.000Z',
      timezone: 'UTC',
      sortBy: 'timestamp',
      sortOrder: 'asc',
      page: '1',
      limit: '1000',
      country: 'US,CA',
    });
  });

  it('rounds microseconds outwards, so that no event at a boundary is lost', () => {
    const params = toSearchParams({ ...query, start: START + 0.25, end: START + 1.25 });
    expect(params.get('start')).toBe('2026-11-14T00:00:00.000Z');
    expect(params.get('end')).toBe('2026-11-14T00:00:00.002Z');
  });

  it('allows a window of one instant', () => {
    expect(toSearchParams({ ...query, end: query.start }).get('end')).toBe('2026-11-14T00:00:00.000Z');
  });

  it.each([
    ['limit', { limit: 1001 }],
    ['page', { page: -1 }],
    ['start', { start: Number.NaN }],
    ['end', { end: 1e18 }],
    ['start is after end', { start: START + 9_000_000 }],
    ['timezone is set by the reader', { filters: { timezone: 'UTC' } }],
    ['together with domain', { filters: { key: 'abc' } }],
  ])('refuses with ConfigError: %s', (words, change) => {
    const broken = { ...query, ...change } as EventsQuery;
    expect(() => toSearchParams(broken)).toThrow(ConfigError);
    expect(() => toSearchParams(broken)).toThrow(words);
  });
});
