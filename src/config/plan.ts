import { PLAN_NAMES, requestsPerSecond, SLOWEST } from '../api/plans.ts';

/** What is wrong with the plan at any rate, or with the rate beside it; a rate that is no number has its own fault. */
export function planFault(source: unknown, key: 'plan' | 'requestsPerSecond'): string | undefined {
  const { plan, requestsPerSecond: rate } = source as { plan?: unknown; requestsPerSecond?: unknown };
  if (!PLAN_NAMES.some((known) => known === plan)) return undefined;
  const ofPlan = budgetFault({ plan: String(plan), requestsPerSecond: rate === undefined ? undefined : SLOWEST });
  if (key === 'plan') return ofPlan;
  const isNumber = rate === undefined || !budgetFault({ plan: 'enterprise', requestsPerSecond: rate });
  return ofPlan || !isNumber ? undefined : budgetFault({ plan: String(plan), requestsPerSecond: rate });
}

export function budgetFault(source: Parameters<typeof requestsPerSecond>[0]): string | undefined {
  const budget = requestsPerSecond(source);
  return 'fault' in budget ? budget.fault : undefined;
}

export function perSecondOf(source: Parameters<typeof requestsPerSecond>[0]): number {
  const budget = requestsPerSecond(source);
  if ('fault' in budget) throw new Error(budget.fault);
  return budget.value;
}
