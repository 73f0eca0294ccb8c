import { describe, expect, it } from 'vitest';
import { requestsPerSecond } from '../../src/api/plans.ts';

describe('requests per second', () => {
  it.each([
    [{ plan: 'pro' }, 2],
    [{ plan: 'business', requestsPerSecond: 1.5 }, 1.5],
    [{ plan: 'enterprise', requestsPerSecond: 40 }, 40],
  ])('%j → %d', (source, value) => {
    expect(requestsPerSecond(source)).toEqual({ value, faults: [] });
  });

  it.each([
    [{ plan: 'free' }, /no analytics budget.*Business/],
    [{ plan: 'free', requestsPerSecond: 1 }, /no analytics budget/],
    [{ plan: 'enterprise' }, /requestsPerSecond/],
    [{ plan: 'pro', requestsPerSecond: 0 }, /number from/],
    [{ plan: 'pro', requestsPerSecond: 2.1 }, /2.1 is more than the pro plan grants, 2/],
    [{ plan: 'advanced', requestsPerSecond: 100 }, /more than the advanced plan grants, 8/],
    [{ plan: 'pro', requestsPerSecond: -1 }, /number from/],
    [{ plan: 'pro', requestsPerSecond: Number.NaN }, /number from/],
    [{ plan: 'pro', requestsPerSecond: Number.POSITIVE_INFINITY }, /number from/],
    [{ plan: 'pro', requestsPerSecond: 60_000 }, /number from/],
    [{ plan: 'pro', requestsPerSecond: '4' }, /number from/],
  ])('%j is refused', (source, fault) => {
    expect(requestsPerSecond(source)).toMatchObject({ faults: [{ message: expect.stringMatching(fault) }] });
  });
});
