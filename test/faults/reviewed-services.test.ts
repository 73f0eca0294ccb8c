import { createServer, type ServerResponse } from 'node:http';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { RetryLater, StopStream } from '../../src/model/errors.ts';
import { type Finished, freshPlace, type Place } from '../support/cli.ts';
import { closed, listening } from '../support/front.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import {
  cutFirst,
  cutNewest,
  failing,
  lastDayBefore,
  lengthOf,
  nothingAhead,
  sampled,
  scanned,
  sharded,
  staleNewestFirst,
  truncated,
  twice,
} from '../support/reviewed-services.ts';
import { DAY, HOUR, MINUTE } from '../support/sandbox-sync.ts';
import { type Answers, type Asked, plainly, spread, type WrittenEvent } from '../support/written-service.ts';

/**
 * The services of the review, over HTTP and read by the built `tributary`. After every sync nothing is missing that the ledger calls certified; the exit
 * code is 0 where everything older than the settle time is stored and certified, else 4.
 */
interface World {
  name: string;
  answers: Answers;
  /** When the rows were made, in days before now: so many, from, to. */
  rows: ReadonlyArray<readonly [count: number, from: number, to: number]>;
  since: number;
  /** How far the service's clock is behind. */
  behindMs?: number;
  /** From the second sync on. */
  later?: Answers;
  /** Days that pass before a sync, with five new rows each; without: three syncs at once. */
  passing?: readonly number[];
  /** After so many syncs it is complete; undefined where an honest exit code 4 is enough. */
  completeAfter?: number;
  /** Of one sync. */
  mostRequests?: number;
}

const leads = spread(300, Date.now() - 30 * DAY, Date.now(), 'lead').map((one) => ({ ...one, event: 'lead' }));
/** Four hundred and a few for every page are free, and every window that is being read then ends the gap it is at. */
const MOST_REQUESTS = 600;
const daily = [0, 1, 1, 1];

const WORLDS: readonly World[] = [
  { name: 'only rows of another stream', answers: (q) => plainly(q, leads), rows: [[120, 30, 0]], since: 31 },
  {
    name: 'rows of another stream in one answer of twenty',
    answers: (q, all) => plainly(q, q.request % 20 === 3 ? leads : all),
    rows: [[3000, 30, 0]],
    since: 31,
    completeAfter: 2,
  },
  ...[30 * DAY, 7 * DAY, 12 * HOUR].map((ms) => ({
    name: `silent for 40 days, polls a day apart, ranges cut to their first ${ms / HOUR} hours`,
    answers: plainly,
    later: cutFirst(ms),
    rows: [[400, 55, 40]] as const,
    since: 60,
    passing: daily,
  })),
  ...[cutNewest(90 * DAY), cutFirst(90 * DAY)].map((answers, i) => ({
    name: `silent for 118 days, ranges cut to their ${i === 0 ? 'newest' : 'first'} 90`,
    answers,
    rows: [
      [500, 200, 160],
      [501, 42, 0],
    ] as const,
    since: 250,
  })),
  { name: 'wide ranges are sampled', answers: sampled, rows: [[3000, 30, 0]], since: 31 },
  { name: 'of wide ranges a part is scanned', answers: scanned, rows: [[3000, 30, 0]], since: 31 },
  { name: 'an old start becomes the last day', answers: lastDayBefore(14 * DAY), rows: [[1000, 30, 0]], since: 30 },
  { name: 'shards skip their share of the offset', answers: sharded(3), rows: [[4000, 2, 0]], since: 3 },
  { name: 'a stale replica, newest first', answers: staleNewestFirst, rows: [[2000, 5, 0]], since: 6 },
  {
    name: 'ranges above 31 days are refused',
    answers: failing(422, (q) => lengthOf(q) > 31 * DAY),
    rows: [[5000, 120, 0]],
    // Two days of silence before the first row, whatever time of day it is.
    since: 122,
    completeAfter: 1,
  },
  {
    name: 'ranges above 30 days time out',
    answers: failing(504, (q) => lengthOf(q) > 30 * DAY),
    rows: [[5000, 120, 0]],
    // Two days of silence before the first row, whatever time of day it is.
    since: 122,
    completeAfter: 1,
  },
  {
    name: 'an end in the future is refused',
    answers: failing(422, (q) => q.end > q.now + 1000),
    rows: [[3000, 30, 0]],
    since: 31,
    completeAfter: 1,
  },
  {
    name: 'an end in the future is refused by a clock that is behind',
    answers: failing(422, (q) => q.end > q.now),
    behindMs: 5 * MINUTE,
    rows: [[3000, 30, 0.05]],
    since: 31,
    completeAfter: 1,
  },
  {
    name: 'an end in the future shows nothing',
    answers: nothingAhead,
    rows: [[3000, 30, 0.05]],
    since: 31,
    completeAfter: 2,
  },
  { name: 'a proxy truncates bodies', answers: truncated(400), rows: [[3000, 30, 0]], since: 31, completeAfter: 1 },
  {
    name: 'one stray 403',
    answers: failing(403, (q) => q.request === 4),
    rows: [[3000, 30, 0]],
    since: 31,
    completeAfter: 1,
  },
  { name: 'rows stand twice on their page', answers: twice, rows: [[1, 3, 2]], since: 31, completeAfter: 1 },
  {
    name: 'the service goes dark after its fifth answer',
    answers: (q, all) => (q.request > 5 ? [] : plainly(q, all)),
    rows: [[6000, 30, 0]],
    since: 31,
    passing: [0],
    mostRequests: 60,
  },
];

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

describe.concurrent('a service of the review is read completely, or honestly not', () => {
  for (const [index, world] of WORLDS.entries()) {
    it(world.name, { timeout: 600_000 }, () => read(world, `world${index}`));
  }
});

async function read(world: World, source: string): Promise<void> {
  const service = await serve(world);
  try {
    for (const [index, days] of (world.passing ?? [0, 0, 0]).entries()) {
      if (index > 0 && world.later) service.answers = world.later;
      service.pass(days);
      const before = service.requests;
      const done = await run(service, source, world.since, ['sync', 'clicks']);
      const isComplete = (await missingFrom(service, source)) === 0;
      expect(done.code, done.text).toBe(isComplete && done.code === 0 ? 0 : 4);
      expect(await missingFrom(service, source, true), `certified and missing; ${done.text}`).toBe(0);
      if (index + 1 >= (world.completeAfter ?? Number.POSITIVE_INFINITY))
        expect(done.code, done.text + service.lastRequests()).toBe(0);
      expect(service.requests - before).toBeLessThanOrEqual(world.mostRequests ?? MOST_REQUESTS);
    }
    if (world.completeAfter === undefined) return;
    for (const command of ['verify', 'backfill --dry-run', 'backfill --force']) {
      const before = service.requests;
      const done = await run(service, source, world.since, [...command.split(' '), '--from', `${world.since}d`]);
      expect(done.code, `${command}: ${done.text}`).toBe(0);
      expect(service.requests - before, command).toBeLessThanOrEqual(world.mostRequests ?? MOST_REQUESTS);
    }
    expect(await missingFrom(service, source)).toBe(0);
  } finally {
    await service.close();
  }
}

interface Served {
  baseUrl: string;
  answers: Answers;
  events: WrittenEvent[];
  requests: number;
  aheadMs: number;
  pass(days: number): void;
  lastRequests(): string;
  close(): Promise<void>;
}

const daysAgo = (days: number): number => Date.now() - days * DAY;

async function serve(world: World): Promise<Served> {
  const log: string[] = [];
  const server = createServer((request, response) => {
    const asked = new URL(request.url ?? '', 'http://service').searchParams;
    const now = Date.now() + served.aheadMs - (world.behindMs ?? 0);
    const query = {
      start: Date.parse(asked.get('start') ?? ''),
      end: Date.parse(asked.get('end') ?? ''),
      sortOrder: asked.get('sortOrder'),
      page: Number(asked.get('page')),
      limit: Number(asked.get('limit')),
      now,
      request: ++served.requests,
    } as Asked;
    log.push(`${asked}`);
    response.setHeader('date', new Date(now).toUTCString());
    const visible = served.events.filter(({ at }) => at <= now);
    answer(response, () => served.answers(query, visible));
  });
  const port = await listening(server);
  const served: Served = {
    baseUrl: `http://127.0.0.1:${port}`,
    answers: world.answers,
    events: world.rows.flatMap(([count, from, to], i) => spread(count, daysAgo(from), daysAgo(to), 'abc'[i])),
    requests: 0,
    aheadMs: 0,
    pass(days) {
      const [from, to] = [Date.now() + served.aheadMs, Date.now() + served.aheadMs + days * DAY];
      if (days > 0) served.events.push(...spread(5, from + 5 * HOUR, to - 9 * HOUR, `later${from}-`));
      served.aheadMs += days * DAY;
    },
    lastRequests: () => log.slice(-40).join('\n'),
    close: () => closed(server),
  };
  return served;
}

function answer(response: ServerResponse, rows: () => readonly WrittenEvent[]): void {
  response.setHeader('content-type', 'application/json');
  try {
    response.end(JSON.stringify(rows().map(recordOf)));
  } catch (error) {
    if (!(error instanceof StopStream || error instanceof RetryLater)) throw error;
    const { status = 500, message = '' } = error.answer ?? {};
    response.statusCode = status;
    response.end(status === 200 ? '[{"event": "click", "time' : JSON.stringify({ error: { code: 'x', message } }));
  }
}

const recordOf = ({ id, at, event = 'click' }: WrittenEvent): object => ({
  event,
  timestamp: new Date(at).toISOString(),
  eventId: id,
  click: { id },
});

async function run(
  { baseUrl, aheadMs }: Served,
  source: string,
  since: number,
  command: readonly string[],
): Promise<Finished> {
  const config = await place.config(
    `sources:
  ${source}:
    { baseUrl: "${baseUrl}", apiKey: key_of_a_test, plan: enterprise, requestsPerSecond: 200, since: ${since}d, streams: { clicks: {} } }
sinks: { warehouse: { type: postgres } }
state: { url: "${database.url}" }
`,
    `${source}.yaml`,
  );
  const clock = pathToFileURL('test/faults/jumping-clock.mjs').href;
  const env = { NODE_OPTIONS: `--import ${clock}`, CLOCK_JUMP_MS: String(aheadMs), CLOCK_JUMPED: 'yes' };
  return place.run([...command, '--config', config], env);
}

/** Events older than the settle time that are not stored; of those in certified windows, or of all. */
async function missingFrom({ events, aheadMs }: Served, source: string, isCertifiedOnly = false): Promise<number> {
  const [table] = await db.query<{ name: string | null }>({ text: "select to_regclass('attribution.clicks') as name" });
  const stored = table?.name
    ? await db.query<{ event_id: string }>({
        text: 'select event_id from attribution.clicks where _source = $1',
        values: [source],
      })
    : [];
  const windows = await db.query<{ start: number; end: number }>({
    text: `select extract(epoch from start_at) * 1000 as start, extract(epoch from end_at) * 1000 as end
      from tributary.windows where source = $1 and stream = 'clicks' and state = 'certified'`,
    values: [source],
  });
  const isCertified = (at: number): boolean => windows.some(({ start, end }) => at >= +start && at < +end);
  const ids = new Set(stored.map((row) => row.event_id));
  const settled = Date.now() + aheadMs - 15 * MINUTE;
  return events.filter(({ id, at }) => at < settled && (!isCertifiedOnly || isCertified(at)) && !ids.has(id)).length;
}
