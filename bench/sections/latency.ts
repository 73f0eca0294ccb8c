import { startSandbox } from '../../src/sandbox/server.ts';
import { budgetUse, countOf } from '../../test/support/budget-processes.ts';
import { withSyncsApart } from '../support/apart.ts';
import { farAway } from '../support/far-away.ts';
import { withHome } from '../support/home.ts';
import { count, ratio, type Section } from '../support/report.ts';

const PER_SECOND = 8;
const DAYS = 60;
const LIMITERS = ['fixed', 'sliding', 'weighted'] as const;

/** (j) A first sync from a service that is far away: whoever waits for each answer before the next question uses a third of the budget. */
export const latency: Section = {
  title: 'A first sync from afar',
  run(size) {
    const rows = { clicks: size === 'quick' ? 20_000 : 100_000 };
    return withHome(({ url }) =>
      withSyncsApart(async (sync) => {
        const found: { limiter: string; use: number; refused: number; requests: number }[] = [];
        for (const limiter of LIMITERS) {
          const sandbox = await startSandbox({ requestsPerSecond: PER_SECOND, limiter, days: DAYS, rows });
          // The way there takes 100 ms, answers take 100 to 300 ms more: 300 ms, give or take 100.
          const way = await farAway(sandbox.baseUrl, { latencyMs: 200, jitterMs: 0, answerJitterMs: 200 });
          const since = Date.now() - (DAYS + 1) * 86_400_000;
          const sinks = { warehouse: { type: 'postgres' } };
          await sync({ url, baseUrl: way.baseUrl, since, source: limiter, sinks, requestsPerSecond: PER_SECOND });
          const log = sandbox.service.requests;
          const use = budgetUse(log, PER_SECOND);
          found.push({ limiter, use, refused: countOf(log, 429), requests: log.length });
          await way.close();
          await sandbox.close();
        }
        const least = Math.min(...found.map(({ use }) => use));
        const refused = found.reduce((sum, one) => sum + one.refused, 0);
        return {
          tables: [
            {
              head: ['the service counts', 'requests', 'use of the budget', '429s'],
              rows: found.map((one) => [
                ...[`${one.limiter} seconds`, count(one.requests), ratio(one.use), count(one.refused)],
              ]),
            },
          ],
          bars: [
            { says: 'use of the budget by a first sync, the least', measured: least, least: 0.95 },
            { says: '429s of a first sync', measured: refused, most: 0 },
          ],
        };
      }),
    );
  },
};
