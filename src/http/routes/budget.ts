import { readBudgets, readBudgetUse } from '../../cursor/budget-use.ts';
import { toIso } from '../../model/instant.ts';
import type { Budget } from '../api-types.ts';
import type { ControlDeps } from '../deps.ts';
import type { Ask, Route } from '../route.ts';

type Deps = Pick<ControlDeps, 'state' | 'keys'>;

const WEEK = 7 * 24 * 60;

export const budgetRoute = (deps: Deps): Route => ({
  method: 'GET',
  path: '/api/budget',
  summary: 'How the request budget of each key was used by all processes, with the 429s.',
  query: {
    minutes: { type: 'integer', minimum: 1, maximum: WEEK, default: 1440 },
    step: { type: 'integer', minimum: 1, maximum: WEEK, default: 15 },
  },
  answer: 'Budget',
  handle: (ask) => readBudget(deps, ask),
});

/** A key is told by its sources. Not even its digest goes out: nobody needs it. */
async function readBudget({ state, keys }: Deps, { params }: Ask): Promise<Budget> {
  const minutes = Number(params.minutes ?? 1440);
  const step = Number(params.step ?? 15);
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
