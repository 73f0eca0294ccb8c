import { PLAN_NAMES, requestsPerSecond } from '../api/plans.ts';

/** Plan and requestsPerSecond are judged together, each only where it is sound by itself. */
export function planFault(source: unknown): string | undefined {
  const { plan, requestsPerSecond } = source as { plan?: unknown; requestsPerSecond?: unknown };
  if (!PLAN_NAMES.some((known) => known === plan)) return undefined;
  const isSound = requestsPerSecond === undefined || !budgetFault({ plan: 'enterprise', requestsPerSecond });
  return budgetFault({ plan: String(plan), requestsPerSecond: isSound ? requestsPerSecond : 1 });
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
