import { withHome } from '../support/home.ts';
import type { Section } from '../support/report.ts';
import { alongTheWay } from './budget/along-the-way.ts';
import { byProcesses } from './budget/by-processes.ts';
import { inSimulatedTime } from './budget/simulated.ts';

/** (a) The used share of the plan's budget, and the number of 429s, counted by the service. */
export const budget: Section = {
  title: 'Budget use and 429s',
  run: (size) =>
    withHome(async (home) => {
      const parts = [await inSimulatedTime(), await alongTheWay(home, size), await byProcesses(size)];
      return { tables: parts.map(({ table }) => table), bars: parts.flatMap(({ bars }) => bars) };
    }),
};
