import { z } from 'zod';
import { requestsPerSecond as budgetOf, PLAN_NAMES, SLOWEST } from '../api/plans.ts';
import { number } from './values.ts';

export const plan = z
  .enum(PLAN_NAMES)
  .describe(
    'pro 2/s, business 4/s, advanced 8/s; enterprise needs requestsPerSecond, free is refused: it has no budget. ' +
      'The contract asks for Business or higher: on pro the service may answer 403',
  );

export const requestsPerSecond = number
  .refine((perSecond) => !budgetFault({ plan: 'enterprise', requestsPerSecond: perSecond }), {
    error: ({ input }) => budgetFault({ plan: 'enterprise', requestsPerSecond: input }),
  })
  .optional()
  .describe('less than the plan grants, if other programs use the key too');

type Refinement = Parameters<z.ZodType['refine']>;

/** A source's check of plan and rate together, also when other keys have faults: all are reported at once. */
export const soundAt = (key: 'plan' | 'requestsPerSecond'): [(value: unknown) => boolean, Refinement[1]] => [
  (value) => !planFault(value, key),
  {
    path: [key],
    error: ({ input }) => planFault(input, key),
    when: ({ value }) => typeof value === 'object' && value !== null,
  },
];

/** What is wrong with the plan at any rate, or with the rate beside it; a rate that is no number has its own fault. */
function planFault(source: unknown, key: 'plan' | 'requestsPerSecond'): string | undefined {
  const { plan, requestsPerSecond: rate } = source as { plan?: unknown; requestsPerSecond?: unknown };
  if (!PLAN_NAMES.some((known) => known === plan)) return undefined;
  const ofPlan = budgetFault({ plan: String(plan), requestsPerSecond: rate === undefined ? undefined : SLOWEST });
  if (key === 'plan') return ofPlan;
  const isNumber = rate === undefined || !budgetFault({ plan: 'enterprise', requestsPerSecond: rate });
  return ofPlan || !isNumber ? undefined : budgetFault({ plan: String(plan), requestsPerSecond: rate });
}

function budgetFault(source: Parameters<typeof budgetOf>[0]): string | undefined {
  const budget = budgetOf(source);
  return 'fault' in budget ? budget.fault : undefined;
}

export function perSecondOf(source: Parameters<typeof budgetOf>[0]): number {
  const budget = budgetOf(source);
  if ('fault' in budget) throw new Error(budget.fault);
  return budget.value;
}
