import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { STREAM_NAMES, type StreamName } from '../../src/model/streams.ts';
import { type Finished, freshPlace, MAIN, type Place, startProcess } from '../support/cli.ts';
import { type Sandbox, startSandbox } from '../support/odd-service/service.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';

/** Users copy from docs/operations.md: the commands of each recipe are run unmodified, in order. */

const RECIPES = new Map(
  readFileSync('docs/operations.md', 'utf8')
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [title = ''] = section.split('\n');
      return [title, [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands = '']) => commands)] as const;
    }),
);

const DAY = 86_400_000;
const WORLD = { requestsPerSecond: null, rows: { clicks: 300, leads: 80, sales: 60 }, days: 60, seed: 7 } as const;
let place: Place;
let sandbox: Sandbox;
let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  [place, sandbox, database] = await Promise.all([freshPlace(), startSandbox(WORLD), freshDatabase()]);
  db = connect({ url: database.url, max: 2 });
  const bin = join(place.dir, 'bin');
  await mkdir(bin);
  await writeFile(join(bin, 'tributary'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`);
  await chmod(join(bin, 'tributary'), 0o755);
});
afterAll(async () => {
  await db.close();
  await database.drop();
  await sandbox.close();
});

/** One block of a recipe, as a person pastes it: the first failing command ends it. */
async function follow(title: string, block = 0, replacements: Record<string, string> = {}): Promise<Finished> {
  let commands = RECIPES.get(title)?.[block] ?? '';
  expect(commands, title).toContain('tributary ');
  for (const [from, to] of Object.entries({ 'https://api.example.com': sandbox.baseUrl, ...replacements })) {
    commands = commands.replaceAll(from, to);
  }
  const ended = await startProcess('bash', ['-euc', commands], place.dir, {
    PATH: `${join(place.dir, 'bin')}:${process.env.PATH ?? ''}`,
    HOME: place.dir,
    TRIBUTARY_API_KEY: sandbox.apiKey,
    DATABASE_URL: database.url,
  }).done;
  expect([ended.code, ended.stderr], ended.text).toEqual([0, expect.not.stringContaining('bug')]);
  return ended;
}

const daysAgo = (days: number): string => new Date(Date.now() - days * DAY).toISOString().slice(0, 10);
const count = async (table: string, where = 'true'): Promise<number> =>
  (await db.query({ text: `select 1 from ${table} where ${where}` })).length;
const served = (stream: StreamName): number => sandbox.service.ids(stream).length;
const beginning = async (): Promise<number> => {
  const [row] = await db.query<{ since: Date }>({ text: 'select min(since) as since from tributary.cursors' });
  return Number(row?.since);
};

describe('the recipes', () => {
  it('First sync', async () => {
    const { stdout } = await follow('First sync');
    expect(stdout).toContain('all is well');
    for (const stream of STREAM_NAMES) expect(stdout).toMatch(new RegExp(`^main/${stream} .*done `, 'm'));
    expect(await count('attribution.clicks')).toBeGreaterThan(0);
  });

  it('Backfill a date range', async () => {
    const before = await count('attribution.clicks');
    const range = { '2026-07-01': daysAgo(55), '2026-10-01': daysAgo(35) };
    const { stdout } = await follow('Backfill a date range', 0, range);
    expect(stdout).toMatch(/^main\/clicks +1 +0% +\d/m);
    expect(await count('attribution.clicks')).toBe(before);
    await follow('Backfill a date range', 1, range);
    expect(await count('attribution.clicks')).toBeGreaterThan(before);
    expect((await follow('Backfill a date range', 2, range)).stdout).toMatch(/warehouse: all \d+ days match/);
  });

  it('Add a sink', async () => {
    const before = await count('tributary.runs');
    await follow('Add a sink');
    // What was backfilled from before `since` is not part of the first sync.
    const since = `timestamp >= (select min(since) from tributary.cursors)`;
    for (const stream of STREAM_NAMES)
      expect(await count(`reports.${stream}`)).toBe(await count(`attribution.${stream}`, since));
    expect(await count('tributary.runs')).toBe(before + 3);
  });

  it('Rotate a key', async () => {
    const { port } = sandbox;
    await sandbox.close();
    sandbox = await startSandbox({ ...WORLD, port, apiKey: 'the-new-key' });
    const before = await beginning();
    await follow('Rotate a key');
    expect(await beginning()).toBe(before);
    expect(await count('tributary.runs', `state <> 'done'`)).toBe(0);
  });

  it('Move the start date, back', async () => {
    expect(await count('attribution.clicks')).toBeLessThan(served('clicks'));
    await follow('Move the start date');
    for (const stream of STREAM_NAMES) {
      expect(await count(`attribution.${stream}`)).toBe(served(stream));
      expect(await count(`reports.${stream}`)).toBe(served(stream));
    }
    expect(await beginning()).toBe(Date.UTC(2026, 0, 1));
  });

  it('Move the start date, forward', async () => {
    await follow('Move the start date', 1);
    expect(await beginning()).toBeGreaterThan(Date.now() - 9 * DAY);
    expect(await count('attribution.clicks')).toBe(served('clicks'));
  });

  it('The plan changed', async () => {
    expect((await follow('The plan changed')).stdout).toContain('paced at 8/s');
  });

  it('Restore from a backup', async () => {
    for (const schema of ['attribution', 'reports']) {
      await db.query({ text: `delete from ${schema}.clicks where timestamp > now() - interval '2 days'` });
    }
    expect(await count('attribution.clicks')).toBeLessThan(served('clicks'));
    await follow('Restore from a backup');
    expect(await count('attribution.clicks')).toBe(served('clicks'));
    expect(await count('reports.clicks')).toBe(served('clicks'));
  });

  it('Late data', async () => {
    const [late] = sandbox.service.arrive('sales', 1, { from: Date.now() - 6 * DAY, to: Date.now() - 6 * DAY + 1 });
    const { stdout } = await follow('Late data');
    expect(await count('reports.sales', `event_id = '${late}'`)).toBe(1);
    expect(stdout).toMatch(/^main\/sales +\d+ +1 +0 /m);
  });

  it('Quarantine', async () => {
    const lead = (eventId: string) => ({
      event: 'lead',
      eventId,
      eventName: 'Sign up',
      customer: { id: 'c1', email: 'someone@example.org' },
    });
    for (const id of ['lead-a', 'lead-b']) sandbox.service.add('leads', lead(id));
    await followSync();
    const kept = await db.query<{ id: number }>({ text: 'select id from tributary.quarantine order by id' });
    expect(kept).toHaveLength(2);
    const first = { 17: String(kept[0]?.id) };
    const { stdout } = await follow('Quarantine', 0, first);
    expect(stdout).toContain('the record has no time');
    expect(stdout).not.toContain('someone@example.org');
    await db.query({
      text: `update tributary.quarantine set record = (record::jsonb || '{"timestamp":"2026-11-10T10:00:00Z"}')::text where id = $1`,
      values: [kept[0]?.id],
    });
    expect((await follow('Quarantine', 1, first)).stdout).toContain('1 record written, 0 still unusable');
    expect(await count('reports.leads', `event_id like 'lead-%'`)).toBe(1);
    await follow('Quarantine', 2);
    expect(await count('tributary.quarantine')).toBe(0);
  });

  it('Who changed what', async () => {
    expect((await follow('Who changed what')).stdout).toContain('quarantine.drop');
  });

  it('Erase a person', async () => {
    const [customer] = await db.query<{ id: string }>({
      text: 'select customer_id as id from attribution.customers limit 1',
    });
    const of = `customer_id = '${customer?.id}'`;
    expect(await count('reports.customers', of)).toBe(1);
    await follow('Erase a person', 0, { cus_8pQ2: customer?.id ?? '' });
    for (const table of ['attribution.customers', 'reports.customers', 'attribution.leads', 'reports.sales']) {
      expect(await count(table, of)).toBe(0);
    }
  });

  it('Leave the embedded Postgres', async () => {
    const [old, own] = await Promise.all([freshPlace(), freshDatabase()]);
    const env = {
      PATH: `${join(place.dir, 'bin')}:${process.env.PATH ?? ''}`,
      HOME: old.dir,
      TRIBUTARY_API_KEY: sandbox.apiKey,
    };
    const paste = async (commands: string): Promise<void> => {
      const ended = await startProcess('bash', ['-euc', commands], old.dir, env).done;
      expect(ended.code, ended.text).toBe(0);
    };
    await paste(`
      tributary init --yes --base-url ${sandbox.baseUrl} --plan enterprise --requests-per-second 500 --since 30d
      tributary sync
      tributary backfill --from 50d --to 40d`);
    await paste(
      (RECIPES.get('Leave the embedded Postgres')?.[0] ?? '')
        .replace('postgresql://user:password@host/db', own.url)
        .replace('--from 2026-07-01 --to 2026-10-01', '--from 50d --to 40d'),
    );
    const there = connect({ url: own.url, max: 1 });
    const [clicks] = await there.query<{ new: number; old: number }>({
      text: `
        select count(*) filter (where timestamp > now() - interval '30 days') as new,
          count(*) filter (where timestamp < now() - interval '40 days') as old from attribution.clicks`,
    });
    await there.close();
    expect(clicks?.new).toBeGreaterThan(100);
    expect(clicks?.old).toBeGreaterThan(20);
    expect(existsSync(join(old.dir, '.tributary'))).toBe(false);
    await own.drop();
  }, 180_000);

  it('are all of the page: a new one needs a test', () => {
    const blocks = [...RECIPES].map(([title, commands]) => [title, commands.length]);
    expect(blocks.filter(([, n]) => n !== 0)).toEqual([
      ['First sync', 1],
      ['Backfill a date range', 3],
      ['Add a sink', 1],
      ['Rotate a key', 1],
      ['Move the start date', 2],
      ['The plan changed', 1],
      ['Restore from a backup', 1],
      ['Leave the embedded Postgres', 1],
      ['Late data', 1],
      ['Quarantine', 3],
      ['Who changed what', 1],
      ['Erase a person', 1],
    ]);
  });
});

const followSync = (): Promise<Finished> =>
  place.run(['sync', 'leads'], { TRIBUTARY_API_KEY: sandbox.apiKey, DATABASE_URL: database.url });
