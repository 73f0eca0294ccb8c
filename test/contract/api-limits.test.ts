import { describe, expect, it } from 'vitest';
import { PLANS, type PlanName, requestsPerSecond } from '../../src/api/plans.ts';
import { retryAfterMs } from '../../src/api/service-errors.ts';
import { contractTable } from '../support/contract.ts';

const NOW = Date.UTC(2026, 10, 14, 10, 30);
const planOf = (name = ''): PlanName => name.toLowerCase() as PlanName;
const number = (text = ''): number | undefined => {
  const digits = /^[\d,]+/.exec(text)?.[0];
  return digits === undefined ? undefined : Number(digits.replaceAll(',', ''));
};

describe('analytics limits of the contract', () => {
  const rows = contractTable('Analytics endpoints (`GET /analytics`, `GET /events`)');
  it.each(rows.map((row) => [row.Plan ?? '', row.Limit ?? ''] as const))('%s: %s', (plan, limit) => {
    const result = requestsPerSecond({ plan: planOf(plan) });
    if (number(limit) !== undefined) expect(result).toEqual({ value: number(limit), faults: [] });
    else
      expect(result).toMatchObject({
        faults: [{ message: expect.stringMatching(plan === 'Free' ? /no analytics budget/ : /requestsPer/) }],
      });
  });
  it('has no plan more and none less', () => {
    expect(Object.keys(PLANS)).toEqual(rows.map((row) => planOf(row.Plan)));
  });
});

describe('standard limits of the contract', () => {
  const rows = contractTable('Standard limit by plan (all endpoints except analytics endpoints)');
  it.each(rows.map((row) => [row.Plan ?? '', row.Limit ?? ''] as const))('%s: %s', (plan, limit) => {
    expect(PLANS[planOf(plan)].standardPerMinute).toBe(number(limit));
  });
});

describe('rate limit headers of the contract', () => {
  const effect: Record<string, { value: string; waitMs: number | undefined }> = {
    // Described as per hour, per second in practice: nothing is computed from it, and nothing from what remains.
    'X-RateLimit-Limit': { value: '4', waitMs: undefined },
    'X-RateLimit-Remaining': { value: '0', waitMs: undefined },
    'X-RateLimit-Reset': { value: String(NOW / 1000 + 9), waitMs: 9000 },
    'Retry-After': { value: '5', waitMs: 5000 },
  };
  const rows = contractTable('Rate limit response headers');
  it.each(rows.map((row) => [row.Header ?? '', row.Meaning ?? ''] as const))('%s: %s', (name) => {
    const row = effect[name];
    expect(row).toBeDefined();
    expect(retryAfterMs(new Headers({ [name]: row?.value ?? '' }), NOW)).toBe(row?.waitMs);
  });
  it('Retry-After goes before X-RateLimit-Reset', () => {
    const headers = new Headers({ 'retry-after': '5', 'x-ratelimit-reset': String(NOW / 1000 + 9) });
    expect(retryAfterMs(headers, NOW)).toBe(5000);
  });
});
