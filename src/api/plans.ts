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

/** Requests a minute to all other endpoints; for a "custom" plan, what the largest plan with a number grants. */
export const standardPerMinute = (plan: PlanName): number =>
  PLANS[plan].standardPerMinute ?? (PLANS.advanced.standardPerMinute as number);

/** One request in 100 s is the slowest that still makes progress; above 1000/s the unit is probably wrong. */
const [SLOWEST, FASTEST] = [0.01, 1000];

interface BudgetFault {
  key: 'plan' | 'requestsPerSecond';
  message: string;
}

/** The budget of a source, or all its faults. Returned, not thrown: the config reports all faults at once, including an unknown plan. */
export function requestsPerSecond(source: { plan?: unknown; requestsPerSecond?: unknown }): {
  value?: number;
  faults: BudgetFault[];
} {
  const { requestsPerSecond: rate } = source;
  const plan = PLAN_NAMES.find((name) => name === source.plan);
  const granted = plan && PLANS[plan].analyticsPerSecond;
  const faults: BudgetFault[] = [];
  const refuse = (key: BudgetFault['key'], message: string): void => void faults.push({ key, message });
  if (granted === 'none')
    refuse('plan', `the ${plan} plan has no analytics budget: GET /events needs the Business plan or higher`);
  if (granted === 'custom' && rate === undefined)
    refuse('plan', `the ${plan} plan has a custom budget: give it as requestsPerSecond`);
  if (rate !== undefined && !(typeof rate === 'number' && rate >= SLOWEST && rate <= FASTEST))
    refuse('requestsPerSecond', `requestsPerSecond must be a number from ${SLOWEST} to ${FASTEST}`);
  else if (typeof rate === 'number' && typeof granted === 'number' && rate > granted)
    refuse(
      'requestsPerSecond',
      `${rate} is more than the ${plan} plan grants, ${granted}: the service would answer 429`,
    );
  const value = rate ?? granted;
  return { faults, ...(faults.length === 0 && typeof value === 'number' && { value }) };
}
