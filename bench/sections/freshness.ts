import { setTimeout as sleep } from 'node:timers/promises';
import { type Sandbox, startSandbox } from '../../test/support/odd-service/service.ts';
import { configOf, sync } from '../support/engine.ts';
import { type Home, withHome } from '../support/home.ts';
import { median } from '../support/measure.ts';
import type { Report, Section } from '../support/report.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const EVENTS_A_POLL = 5;

/** How an event becomes visible. Polls look back 15 minutes behind the watermark, which is 10 minutes behind now. */
const WAYS = [
  { name: 'between two polls', lateMs: 1, isDuring: false },
  { name: 'between two polls, 5 minutes late', lateMs: 5 * MINUTE_MS, isDuring: false },
  { name: 'between two polls, 20 minutes late', lateMs: 20 * MINUTE_MS, isDuring: false },
  { name: 'while a poll is under way', lateMs: 1, isDuring: true },
] as const;

type Way = (typeof WAYS)[number];

/** (g) From the visibility of an event at the service to its row in the table, in polls. */
export const freshness: Section = {
  title: 'Freshness, in polls',
  run: (size) =>
    withHome(async (home) => {
      const sandbox = await startSandbox({
        requestsPerSecond: null,
        rows: { clicks: 3000, leads: 0, sales: 0 },
        days: 2,
      });
      try {
        return await measure(home, sandbox, size === 'quick' ? 3 : 10);
      } finally {
        await sandbox.close();
      }
    }),
};

async function measure(home: Home, { baseUrl, service }: Sandbox, polls: number): Promise<Report> {
  const since = Date.now() - 3 * DAY_MS;
  const sinks = { warehouse: { type: 'postgres' } };
  const config = configOf({ url: home.url, baseUrl, since, source: 'main', sinks });
  const waiting = new Map<string, { way: Way; polls: number }>();
  const took = new Map<Way, number[]>(WAYS.map((way) => [way, []]));
  const asked: number[] = [];

  const arrive = (way: Way): void => {
    const at = service.now() - way.lateMs;
    for (const id of service.arrive('clicks', EVENTS_A_POLL, { from: at, to: at })) waiting.set(id, { way, polls: 0 });
  };
  const arriveAll = (isDuring: boolean): void => WAYS.filter((way) => way.isDuring === isDuring).forEach(arrive);
  const lookForThem = async (): Promise<void> => {
    const found = await home.db.query<{ id: string }>({
      text: 'select event_id as id from attribution.clicks where event_id = any($1)',
      values: [[...waiting.keys()]],
    });
    const there = new Set(found.map(({ id }) => id));
    for (const [id, one] of waiting) {
      one.polls += 1;
      if (!there.has(id)) continue;
      took.get(one.way)?.push(one.polls);
      waiting.delete(id);
    }
  };

  await sync(config);
  for (let poll = 0; poll < polls || waiting.size > 0; poll++) {
    if (poll === polls + 5) throw new Error(`${waiting.size} events never came`);
    if (poll < polls) arriveAll(false);
    const underWay = sync(config);
    if (poll < polls) await sleep(poll * 10).then(() => arriveAll(true));
    asked.push((await underWay).requests);
    await lookForThem();
  }
  const most = (isDuring: boolean): number =>
    Math.max(...[...took].filter(([way]) => way.isDuring === isDuring).flatMap(([, found]) => found));
  return {
    tables: [
      {
        head: ['the event is first shown', 'events', 'polls, median', 'polls, most'],
        rows: [...took].map(([{ name }, found]) => [name, found.length, median(found), Math.max(...found)]),
      },
      { head: ['requests a poll, median', 'most'], rows: [[median(asked), Math.max(...asked)]] },
    ],
    bars: [
      { says: 'polls that an event waits for, shown between two of them', measured: most(false), most: 1 },
      { says: 'the same, shown while one is under way', measured: most(true), most: 2 },
    ],
  };
}
