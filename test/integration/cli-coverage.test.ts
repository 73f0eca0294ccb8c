import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { quarantine } from '../../src/cursor/quarantine.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { type Finished, freshPlace, longLines, type Place } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { queryDuckdb } from '../support/lake-readers.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';

/**
 * What is complete, since when, in which streams: a person syncs the last month, then backfills an older one. Every place that shows
 * the watermark also shows its start, its filters, what was set aside, and the older month; with the built binary.
 */

let place: Place;
let sandbox: Sandbox;
let databases: [TestDatabase, TestDatabase];
let db: Database;
let elsewhere: Database;

const TOKEN = 'a-long-token-that-nobody-guesses';
const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const day = (ago: number): string => new Date(today - ago * DAY_MS).toISOString();
const [FROM, TO] = [day(90), day(60)];
const FILTERS = 'country=US,DE,GB';

beforeAll(async () => {
  [place, sandbox, ...databases] = await Promise.all([
    freshPlace(),
    smallSandbox({ rows: { clicks: 900, leads: 60, sales: 60 }, days: 120 }),
    freshDatabase(),
    freshDatabase(),
  ]);
  [db, elsewhere] = databases.map(({ url }) => connect({ url, max: 2 })) as [Database, Database];
  await place.config(
    `sources: { main: { baseUrl: "${sandbox.baseUrl}", apiKey: ${sandbox.apiKey}, plan: enterprise, requestsPerSecond: 200, since: 30d,
  streams: { clicks: { every: 1h, filters: { country: [US, DE, GB] } }, leads: { every: 1h } } } }
sinks: { warehouse: { type: postgres }, other: { type: postgres, url: "${databases[1].url}" }, lake: { type: parquet, path: ./lake } }
http: { port: ${await freePort()}, token: ${TOKEN} }
state: { url: "${databases[0].url}" }\n`,
  );
  expect(await tributary('sync')).toMatchObject({ code: 0 });
  const records = [{ reason: 'the record has no time', record: { event: 'lead' } }];
  await quarantine(db, { source: 'main', stream: 'leads', runId: '20261114T120000-00000001' }, records);
  expect(await tributary('backfill', '--from', FROM, '--to', TO)).toMatchObject({ code: 0 });
});
afterAll(async () => {
  await Promise.all([db.close(), elsewhere.close()]);
  await Promise.all(databases.map((database) => database.drop()));
});

const tributary = (...args: string[]): Promise<Finished> => place.run([...args, '--config', 't.yaml']);

const PROMISES = [
  { stream: 'clicks', since: day(30), filters: FILTERS, set_aside: 0, also: `{[${FROM},${TO})}` },
  { stream: 'leads', since: day(30), filters: null, set_aside: 1, also: `{[${FROM},${TO})}` },
];

describe('coverage', () => {
  it.each([
    ['the state’s database', () => db],
    ['another database', () => elsewhere],
  ])('the view in %s', async (_name, database) => {
    const rows = await database().query({
      text: `
        select stream, since, filters, set_aside, also_complete = $1::tstzmultirange as "isAlso",
          complete_through > now() - interval '1 hour' as "isFresh"
        from attribution.coverage order by stream`,
      values: [`{[${FROM},${TO})}`],
    });
    expect(rows).toEqual(
      PROMISES.map(({ also: _, since, ...row }) => ({ ...row, since: new Date(since), isAlso: true, isFresh: true })),
    );
  });

  it('_coverage.json in the lake, for people and for DuckDB', async () => {
    const file = join(place.dir, 'lake/_coverage.json');
    const rows = JSON.parse(await readFile(file, 'utf8')) as Array<Record<string, unknown>>;
    expect(rows).toMatchObject(
      PROMISES.map(({ also: _, ...row }) => ({ ...row, also_complete: [{ start: FROM, end: TO }] })),
    );
    const [counted] = await queryDuckdb(
      `select count(*) as rows, min(c.since) as since from read_json('${file}') c where c.complete_through > c.since`,
    );
    expect(Number(counted?.rows)).toBe(2);
    expect(await readFile(join(place.dir, 'lake/README.md'), 'utf8')).toContain('every event from `since` up to');
  });

  it('status, within 80 columns', async () => {
    const { stdout } = await tributary('status');
    expect(longLines(stdout)).toEqual([]);
    const text = stdout.replace(/\n {2}/g, ' ');
    const said = (at: string): string => at.slice(0, 16).replace('T', ' ');
    expect(text).toMatch(/^stream +complete through/m);
    expect(text).toContain(`main/clicks lake       ${day(30).slice(0, 10)}  `);
    expect(text).toContain(`main/clicks: filters ${FILTERS}: only matching events are complete\n`);
    // Once for two streams and three sinks, which agree.
    const line = `main: also complete: ${said(FROM)} to ${said(TO)} UTC (exclusive)\n`;
    expect(text.split(line)).toHaveLength(2);
    expect(text).toContain('main/leads: 1 set aside');
    const { stdout: help } = await tributary('status', '--help');
    expect(help.replace(/\s+/g, ' ')).toContain(
      'every event from "since" up to that time that matches the filters is in the sink, except records that were set aside',
    );
  });

  it('status --json', async () => {
    const { streams } = JSON.parse((await tributary('status', '--json')).stdout) as {
      streams: Array<Record<string, unknown>>;
    };
    expect(streams).toHaveLength(6);
    for (const { stream, since, filters, set_aside } of PROMISES) {
      const own = streams.filter((one) => one.stream === stream);
      const said = { since, filters, setAside: set_aside, alsoComplete: [{ start: FROM, end: TO }] };
      expect(own).toMatchObject([said, said, said]);
    }
  });

  it('the control room’s API', async () => {
    const room = place.start(['start', '--config', 't.yaml']);
    await room.saw(/http:\/\/127\.0\.0\.1:\d+/);
    const config = await readFile(join(place.dir, 't.yaml'), 'utf8');
    const [, port] = /port: (\d+)/.exec(config) ?? [];
    const response = await fetch(`http://127.0.0.1:${port}/api/overview`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    const { streams } = (await response.json()) as { streams: Array<Record<string, unknown>> };
    const alsoComplete = [{ start: FROM, end: TO }];
    expect(streams).toMatchObject(
      PROMISES.map(({ stream, since, filters, set_aside }) => ({
        ...{ stream, since, filters, setAside: set_aside },
        sinks: ['lake', 'other', 'warehouse'].map((sink) => ({ sink, since, alsoComplete })),
      })),
    );
    room.child.kill('SIGTERM');
    await room.done;
  });
});
