import { readBudgets, readBudgetUse } from '../../cursor/budgets.ts';
import { toIso } from '../../model/instant.ts';
import type { ControlDeps } from '../dependencies.ts';
import { type Route, route } from '../route.ts';
import { count, figure, list, moment, named, object, orNull, text, z } from '../shapes.ts';

const Budget = named(
  'Budget',
  object({
    now: moment,
    minutes: count,
    step: count,
    keys: list(
      object({
        sources: list(text).describe('a key is told by its sources; empty: one that the config no longer has'),
        perSecond: figure,
        pausedSeconds: orNull(figure).describe('after a 429: how long everybody still waits'),
        points: list(
          object({
            at: moment,
            requests: count,
            byLane: object({ fresh: count, repair: count, backfill: count }),
            tooManyRequests: count,
            pauses: count,
            share: figure.describe('of what the budget would have allowed'),
          }),
        ).describe('stretches without a request have no point'),
      }),
    ),
  }),
);
export type Budget = z.infer<typeof Budget>;
export type KeyBudget = Budget['keys'][number];

type Deps = Pick<ControlDeps, 'state' | 'keys'>;

const WEEK = 7 * 24 * 60;
const BudgetQuery = object({
  minutes: z.int().min(1).max(WEEK).default(1440),
  step: z.int().min(1).max(WEEK).default(15),
});

export const budgetRoute = (deps: Deps): Route =>
  route({
    method: 'GET',
    path: '/api/budget',
    summary: 'How the request budget of each key was used by all processes, with the 429s.',
    role: 'read',
    query: BudgetQuery,
    answer: Budget,
    handle: ({ query }) => readBudget(deps, query),
  });

/** A key is told by its sources. Not even its digest goes out: nobody needs it. */
async function readBudget({ state, keys }: Deps, { minutes, step }: z.infer<typeof BudgetQuery>): Promise<Budget> {
  const now = await readBudgets(state);
  const used = await readBudgetUse(state, { minutes, step });
  const shown = now.filter(({ keyHash }) => isOurs(keyHash) || used.some((use) => use.keyHash === keyHash));
  return {
    now: toIso(Date.now()),
    minutes,
    step,
    keys: shown.map(({ keyHash, perSecond, pausedSeconds }) => ({
      sources: [...(keys.find(({ hash }) => hash === keyHash)?.sources ?? [])],
      perSecond,
      pausedSeconds,
      points: used
        .filter((use) => use.keyHash === keyHash)
        .map(({ from, requests, byLane, tooManyRequests, pauses, share }) => ({
          at: from,
          requests,
          byLane,
          tooManyRequests,
          pauses,
          share,
        })),
    })),
  };

  function isOurs(keyHash: string): boolean {
    return keys.some(({ hash }) => hash === keyHash);
  }
}
