/** The plans of the contract. Analytics endpoints, `GET /events` among them, have a budget of their own per second. */
export interface Plan {
  name: PlanName;
  /** All other endpoints; undefined if the contract says "custom". */
  standardPerMinute: number | undefined;
  analyticsPerSecond: number | 'none' | 'custom';
}

export const PLAN_NAMES = ['free', 'pro', 'business', 'advanced', 'enterprise'] as const;
export type PlanName = (typeof PLAN_NAMES)[number];

export const PLANS: Readonly<Record<PlanName, Plan>> = {
  free: { name: 'free', standardPerMinute: 60, analyticsPerSecond: 'none' },
  pro: { name: 'pro', standardPerMinute: 600, analyticsPerSecond: 2 },
  business: { name: 'business', standardPerMinute: 1200, analyticsPerSecond: 4 },
  advanced: { name: 'advanced', standardPerMinute: 3000, analyticsPerSecond: 8 },
  enterprise: { name: 'enterprise', standardPerMinute: undefined, analyticsPerSecond: 'custom' },
};

/** Requests a minute to all other endpoints. Where the contract says "custom", what the largest plan with a number grants. */
export const standardPerMinute = (plan: PlanName): number =>
  PLANS[plan].standardPerMinute ?? (PLANS.advanced.standardPerMinute as number);

/** One request in 100 s is the slowest that still makes progress; above 1000/s the unit is probably wrong. */
export const SLOWEST = 0.01;
const FASTEST = 1000;

/** The budget of a source. A fault is returned, not thrown: the config reports all of its faults at once. */
export function requestsPerSecond(source: {
  plan: string;
  requestsPerSecond?: unknown;
}): { value: number } | { fault: string } {
  const plan = PLAN_NAMES.find((name) => name === source.plan);
  if (!plan) return { fault: `unknown plan ${JSON.stringify(source.plan)}: must be one of ${PLAN_NAMES.join(', ')}` };
  const budget = PLANS[plan].analyticsPerSecond;
  if (budget === 'none') {
    return { fault: `the ${plan} plan has no analytics budget: GET /events needs the Business plan or higher` };
  }
  const override = source.requestsPerSecond;
  if (override === undefined) {
    if (budget !== 'custom') return { value: budget };
    return { fault: `the ${plan} plan has a custom budget: give it as requestsPerSecond` };
  }
  if (typeof override !== 'number' || !(override >= SLOWEST && override <= FASTEST)) {
    return { fault: `requestsPerSecond must be a number from ${SLOWEST} to ${FASTEST}` };
  }
  if (budget !== 'custom' && override > budget) {
    return { fault: `${override} is more than the ${plan} plan grants, ${budget}: the service would answer 429` };
  }
  return { value: override };
}
