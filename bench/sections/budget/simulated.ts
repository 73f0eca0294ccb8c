import { createBudget, createOwnStore, type Slot } from '../../../src/api/budget.ts';
import { createRandom } from '../../../src/sandbox/data/random.ts';
import { limiterOf } from '../../../test/support/odd-service/limiters.ts';
import type { Bar, Table } from '../../support/report.ts';
import { type Cell, cellsWith, type Found, JITTERS, LATENCY_MS, leastUse, refusedIn, tableOf } from './matrix.ts';

const MINUTES = 30;
const RETRY_AFTER_MS = 1000;
/** With a clock of doubles, a wait below its resolution would never end. */
const SHORTEST_MS = 0.01;

/**
 * The real rules of the budget and of the service's counting, on a simulated clock: half an hour takes a moment, and no other
 * program interferes.
 */
export async function inSimulatedTime(): Promise<{ table: Table; bars: Bar[] }> {
  const found: Found[] = [];
  for (const cell of JITTERS.flatMap(cellsWith)) found.push(await simulate(cell));
  const perThousand = ({ refused, use, perSecond }: Found): number =>
    (refused / (use * perSecond * MINUTES * 60)) * 1000;
  return {
    table: tableOf(`${MINUTES} minutes, simulated`, found),
    bars: [
      { says: 'simulated: use of the budget, the least of these 27', measured: leastUse(found), least: 0.94 },
      {
        says: 'simulated: 429s with up to 20 ms of jitter',
        measured: refusedIn(found.filter(({ jitterMs }) => jitterMs <= 20)),
        most: 0,
      },
      {
        says: 'simulated: 429s in 1,000 requests, the most of these 27',
        measured: Math.max(...found.map(perThousand)),
        most: 1,
      },
    ],
  };
}

async function simulate(cell: Cell): Promise<Found> {
  const { perSecond, limiter: form, jitterMs } = cell;
  const random = createRandom(1);
  const agenda = createAgenda();
  const budget = createBudget(perSecond, createOwnStore(perSecond, agenda.now));
  const limiter = limiterOf(form);
  const oneWay = (): number => LATENCY_MS / 2 + random.next() * jitterMs;
  let [served, refused] = [0, 0];

  const ask = async (): Promise<void> => {
    const turn = await budget.take('fresh', false);
    if ('waitMs' in turn) return agenda.after(turn.waitMs, ask);
    agenda.after(turn.at - agenda.now(), () => {
      agenda.after(oneWay(), () => arrive(turn));
      agenda.after(0, ask);
    });
  };
  const arrive = (slot: Slot): void => {
    const { allowed } = limiter.take(perSecond, agenda.now());
    if (allowed) served += 1;
    else refused += 1;
    agenda.after(oneWay(), () => (allowed ? budget.answered(slot) : budget.tooMany(RETRY_AFTER_MS, slot)));
  };
  agenda.after(0, ask);
  await agenda.runFor(MINUTES * 60_000);
  return { ...cell, use: served / (perSecond * MINUTES * 60), refused };
}

type Work = () => Promise<void> | void;

function createAgenda() {
  const entries: Array<{ at: number; work: Work }> = [];
  // Not 0, from which the pace counts at first.
  let now = 1_000_000;
  return {
    now: () => now,
    after(ms: number, work: Work): void {
      entries.push({ at: now + Math.max(ms, SHORTEST_MS), work });
      entries.sort((a, b) => a.at - b.at);
    },
    async runFor(ms: number): Promise<void> {
      const end = now + ms;
      for (let next = entries.shift(); next && next.at <= end; next = entries.shift()) {
        now = next.at;
        await next.work();
      }
    },
  };
}
