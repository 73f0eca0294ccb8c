import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { untilToday } from '../../src/sandbox/data/world.ts';
import { type Finished, freshPlace, type Place } from '../support/cli.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import type { Traits } from '../support/odd-service/traits.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { sandboxWith } from '../support/sandbox.ts';

/**
 * The built `tributary` reads the sandbox with the tests' odd behaviours. A run ends complete, or names with
 * exit code 4 what is not proven; what the ledger certifies is complete either way; requests are bounded.
 */
interface World {
  name: string;
  traits: readonly string[];
  clicks: number;
  days: number;
  /** The start of the first sync (default: before all history). */
  since?: string;
  /** How many syncs make it complete. Undefined if exit code 4 is the best possible result. */
  completeAfter?: number;
  /** The maximum of requests, of all commands together. */
  mostRequests: number;
  /** A row may be missing from any answer, which no client can detect: only an honest end within bounds is expected. */
  mayMissRows?: boolean;
  /** Traits that change after the first sync. */
  later?: Traits;
}

const WORLDS: readonly World[] = [
  {
    name: 'the order of ties depends on page and limit',
    traits: ['pagedTies', 'ties=1300'],
    clicks: 500,
    days: 3,
    mostRequests: 400,
  },
  {
    name: 'start is widened to the day, end is kept, deep pages fail',
    traits: ['widenStart=day', 'deepPages=fail@3'],
    clicks: 8000,
    days: 2,
    mostRequests: 1500,
  },
  {
    name: 'nothing is shown for a while during the first sync',
    traits: ['emptyAnswers=first:12'],
    clicks: 3000,
    days: 3,
    completeAfter: 3,
    mostRequests: 200,
  },
  {
    name: 'start is rounded up to the hour',
    traits: ['roundStart=hour'],
    clicks: 224,
    days: 2,
    completeAfter: 3,
    mostRequests: 200,
  },
  {
    name: 'days of another zone, where those of UTC were learned',
    traits: ['widen=day'],
    clicks: 6000,
    days: 6,
    since: '2d',
    completeAfter: 3,
    mostRequests: 300,
    later: { widen: 'day@-8' },
  },
  {
    name: 'sortOrder is ignored',
    traits: ['sortOrder=ignored'],
    clicks: 5400,
    days: 4,
    // Each of five commands may ask 400 times; the number depends on how many chains a busy machine runs concurrently.
    mostRequests: 1500,
  },
  {
    name: 'rows that break only larger pages',
    traits: ['fragile=3@100'],
    clicks: 4000,
    days: 4,
    completeAfter: 3,
    mostRequests: 600,
  },
  {
    name: 'pages cut by bytes, within a tie',
    traits: ['cutBytes=400kb', 'ties=1500'],
    clicks: 300,
    days: 3,
    mostRequests: 500,
  },
  {
    name: 'retention slides past since, and is refused',
    traits: [],
    clicks: 3000,
    days: 6,
    completeAfter: 1,
    mostRequests: 200,
    later: { retention: '403@2d' },
  },
  {
    name: 'what is older than the retention is refused from the beginning',
    traits: ['retention=403@2d'],
    clicks: 3000,
    days: 6,
    mostRequests: 300,
  },
  {
    name: "the service's clock is 14 minutes ahead",
    traits: ['clockSkew=14m'],
    clicks: 2000,
    days: 3,
    completeAfter: 3,
    mostRequests: 200,
  },
  {
    name: 'full pages are refused with 413',
    traits: ['refuseAbove=413@400'],
    clicks: 3000,
    days: 3,
    completeAfter: 1,
    mostRequests: 300,
  },
  {
    name: 'ranges above 31 days are refused',
    traits: ['maxSpan=422@31d'],
    clicks: 1000,
    days: 60,
    completeAfter: 1,
    mostRequests: 300,
  },
  {
    name: 'rows come and go',
    traits: ['flapping=0.05'],
    clicks: 3000,
    days: 3,
    // Each of five commands may ask 400 times, and a few times for every page.
    mostRequests: 2200,
    mayMissRows: true,
  },
];

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MOST_SYNCS = 3;

let place: Place;
let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  [place, database] = await Promise.all([freshPlace(), freshDatabase()]);
  db = connect({ url: database.url, max: 2 });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

// Concurrent: most of their time they wait for retries or for each other's Postgres.
describe.concurrent('an odd service is read completely or reported as not', () => {
  for (const [index, world] of WORLDS.entries()) {
    it(world.name, { timeout: 600_000 }, async () => {
      await read(world, await play(world), `world${index}`);
    });
  }
});

async function read(world: World, sandbox: Sandbox, source: string): Promise<void> {
  const run = await commandsOf(world, sandbox, source);
  const exits: (number | null)[] = [];
  for (let syncs = 1; syncs <= MOST_SYNCS; syncs++) {
    const done = await run('sync', 'clicks');
    exits.push(done.code);
    await soundSoFar(world, sandbox, source, done, true);
    if (world.completeAfter !== undefined && syncs >= world.completeAfter) expect(exits.at(-1), done.text).toBe(0);
    if (syncs === 1 && world.later) sandbox.service.traits = { ...sandbox.service.traits, ...world.later };
    else if (done.code === 0) break;
  }

  const to = new Date(Date.now() - (Date.now() % DAY)).toISOString().slice(0, 10);
  const from = new Date(Date.parse(to) - (world.days + 1) * DAY).toISOString().slice(0, 10);
  // A range that retention has removed cannot be read again.
  const canReadAgain = world.completeAfter !== undefined && world.later?.retention === undefined;
  for (const command of [
    ['verify', 'clicks', '--from', from, '--to', to],
    ['backfill', 'clicks', '--from', from, '--to', to, '--force'],
  ]) {
    const done = await run(...command);
    await soundSoFar(world, sandbox, source, done);
    const missing = world.mayMissRows ? 0 : await missingFrom(sandbox, source, () => true);
    if (missing > 0) expect(done.code, `${missing} rows are missing: ${done.text}`).not.toBe(0);
    else if (canReadAgain) expect(done.code, done.text).toBe(0);
  }
}

/** After every command: an honest exit code, and certified windows lack nothing. */
async function soundSoFar(
  world: World,
  sandbox: Sandbox,
  source: string,
  { code, text }: Finished,
  isSync = false,
): Promise<void> {
  // A range that the plan does not show is refused in the service's own words.
  expect(/answered 403/.test(text) && !isSync ? [3, 4] : [0, 4], text).toContain(code);
  const windows = await db.query<{ start: number; end: number }>({
    text: `select extract(epoch from start_at) * 1000 as start, extract(epoch from end_at) * 1000 as end
      from tributary.windows where source = $1 and stream = 'clicks' and state = 'certified'`,
    values: [source],
  });
  const isCertified = (at: number): boolean =>
    windows.some(({ start, end }) => at >= Number(start) && at < Number(end));
  if (!world.mayMissRows)
    expect(await missingFrom(sandbox, source, isCertified), `certified and missing; ${text}`).toBe(0);

  const [cursor] = await db.query<{ through: string | null }>({
    text: `select extract(epoch from complete_through) * 1000 as through from tributary.cursors
      where source = $1 and stream = 'clicks'`,
    values: [source],
  });
  const through = Number(cursor?.through ?? 0);
  expect(through, 'a promise about the future').toBeLessThanOrEqual(Date.now());
  if (isSync && code === 0 && cursor?.through)
    expect(Date.now() - through, 'exit 0, and far behind').toBeLessThan(HOUR);
  if (code === 4) expect(text).toMatch(/certified|does NOT match|not comparable/);
}

async function missingFrom(sandbox: Sandbox, source: string, must: (at: number) => boolean): Promise<number> {
  const stored = await db.query<{ event_id: string }>({
    text: 'select event_id from attribution.clicks where _source = $1',
    values: [source],
  });
  const ids = new Set(stored.map((row) => row.event_id));
  return sandbox.service.truth('clicks').filter(({ id, at }) => must(at) && !ids.has(id)).length;
}

const play = ({ traits, clicks, days }: World): Promise<Sandbox> =>
  sandboxWith([...traits], { ...untilToday(1), rows: { clicks, leads: 0, sales: 0 }, days });

const lastRequests = ({ service }: Sandbox): string =>
  service.requests
    .slice(-60)
    .map(({ query, status, rows }) => `${JSON.stringify(query)} → ${status}, ${rows} rows`)
    .join('\n');

async function commandsOf(
  { days, since, mostRequests }: World,
  sandbox: Sandbox,
  source: string,
): Promise<(...args: string[]) => Promise<Finished>> {
  const { baseUrl, apiKey } = sandbox;
  const from = since ?? `${days + 2}d`;
  const config = await place.config(
    `sources:
  ${source}:
    { baseUrl: "${baseUrl}", apiKey: ${apiKey}, plan: enterprise, requestsPerSecond: 200, since: ${from}, streams: { clicks: {} } }
sinks: { warehouse: { type: postgres } }
state: { url: "${database.url}" }
`,
    `${source}.yaml`,
  );
  return async (command = '', ...args) => {
    const running = place.start([command, ...args, '--config', config]);
    const finished = { yet: false };
    const done = running.done.finally(() => {
      finished.yet = true;
    });
    while (!finished.yet) {
      await Promise.race([done, sleep(500)]);
      const { requests } = sandbox.service.stats();
      if (requests <= mostRequests) continue;
      running.child.kill('SIGKILL');
      await done;
      expect.fail(`${command} has made ${requests} requests, and goes on:\n${lastRequests(sandbox)}`);
    }
    return done;
  };
}
