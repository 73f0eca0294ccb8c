import { beforeAll, describe, expect, it } from 'vitest';
import type { Finished } from '../support/cli.ts';
import { commandsOn } from '../support/commands.ts';
import { freshDatabase } from '../support/postgres.ts';

/** Everyday commands: without the key, without a date, without the subcommand of a group. */

const KEY = 'THE_KEY_OF_THIS_TEST';
const { place, sandbox, db, url, tributary } = await commandsOn(
  { rows: { clicks: 40, leads: 10, sales: 10 }, days: 20 },
  { settings: { apiKey: `\${${KEY}}`, since: '15d', streams: { clicks: { maxLag: '1h' }, leads: {}, sales: {} } } },
);

beforeAll(async () => expect((await withKey('sync')).code).toBe(0));

const withKey = (...args: string[]): Promise<Finished> =>
  place.run([...args, '--config', 't.yaml'], { [KEY]: sandbox.apiKey });

describe('without the API key', () => {
  it.each([
    ['status', '--check'],
    ['runs', '--json'],
    ['audit', '--json'],
    ['quarantine', 'list'],
    ['cursor', 'get'],
    ['backfills', 'list'],
  ])('%s %s works', async (...args) => {
    const { code, stderr } = await tributary(...args.filter(Boolean));
    expect([code, stderr]).toEqual([0, '']);
  });

  it('a command that calls the service names the missing variable', async () => {
    const { code, stderr } = await tributary('sync');
    expect(code).toBe(2);
    expect(stderr).toContain(`the environment variable ${KEY} is not set`);
  });
});

describe('a bare group', () => {
  it.each([
    ['quarantine', 'nothing was set aside'],
    ['cursor', 'main/clicks'],
    ['backfills', 'no backfill has been queued yet'],
    ['config', 'requestsPerSecond: 200'],
  ])('%s lists', async (group, says) => {
    const { code, stdout } = await tributary(group);
    expect([code, stdout]).toEqual([0, expect.stringContaining(says)]);
  });
});

describe('query', () => {
  it('writes intervals with the largest unit first', async () => {
    const { stdout } = await tributary('query', "select interval '2 days 1 hour 11 minutes 7.97 seconds' as lag");
    expect(stdout).toContain('\n2 days 1 hour 11 minutes 7.97 seconds\n');
  });
});

describe('status --check', () => {
  it('exits with 0 while nothing needs attention', async () => {
    expect((await tributary('status', '--check')).code).toBe(0);
  });

  it('exits with 4 and names a stream that is further behind than maxLag', async () => {
    await db.query({
      text: `update tributary.cursors set complete_through = now() - interval '3 hours' where stream = 'clicks'`,
    });
    const { code, stdout } = await tributary('status', '--check');
    expect([code, stdout]).toEqual([4, expect.stringContaining('main/clicks: action needed: late, 180 min behind')]);
    expect((await tributary('status')).code).toBe(0);
  });

  it('omits a sink that the config no longer has', async () => {
    await db.query({ text: `update tributary.cursors set complete_through = now() where stream = 'clicks'` });
    await db.query({
      text: `insert into tributary.cursors select (jsonb_populate_record(c, jsonb_build_object('sink', 'removed', 'complete_through', now() - interval '3 hours'))).*
        from tributary.cursors c where stream = 'clicks'`,
    });
    const { code } = await tributary('status', '--check');
    await db.query({ text: `delete from tributary.cursors where sink = 'removed'` });
    expect(code).toBe(0);
  });

  it('exits with 4 where a sink was never filled or nothing was ever synced, and with 2 without a config', async () => {
    const sinks = {
      empty: '{ other: { type: postgres, schema: other }, warehouse: { type: postgres } }',
      all: '{ warehouse: { type: postgres } }',
    };
    const configOf = (name: string, url: string, sink: string): Promise<string> =>
      place.config(
        `sources: { main: { baseUrl: "${sandbox.baseUrl}", apiKey: key-of-nobody, plan: pro } }\nsinks: ${sink}\nstate: { url: "${url}" }\n`,
        name,
      );
    await configOf('added.yaml', url, sinks.empty);
    const added = await place.call(['status', '--check', '--config', 'added.yaml']);
    expect([added.code, added.stdout]).toEqual([
      4,
      expect.stringContaining('main: action needed: never synced into other; next: tributary sync'),
    ]);
    const fresh = await freshDatabase();
    await configOf('fresh.yaml', fresh.url, sinks.all);
    const never = await place.call(['status', '--check', '--config', 'fresh.yaml']);
    await fresh.drop();
    expect([never.code, never.stdout]).toEqual([4, expect.stringContaining('next: tributary sync')]);
    const none = await place.call(['status', '--check']);
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('tributary init')]);
    expect((await place.call(['status'])).code).toBe(0);
  });

  it('exits with 4 after three polls in a row that read nothing, long before maxLag', async () => {
    await db.query({ text: `update tributary.cursors set complete_through = now() where stream = 'clicks'` });
    const fail = (n: number) =>
      db.query({
        text: `insert into tributary.runs (id, kind, source, stream, state, started_at, finished_at, message)
          values ($1, 'sync', 'main', 'sales', 'incomplete', now(), now(), 'the service does not answer')`,
        values: [`down-${n}`],
      });
    await fail(1);
    await fail(2);
    expect((await tributary('status', '--check')).code).toBe(0);
    await fail(3);
    // The fourth poll is running: its result is unknown.
    await db.query({
      text: `insert into tributary.runs (id, kind, source, stream) values ('down-4', 'sync', 'main', 'sales')`,
    });
    const { code, stdout } = await tributary('status', '--check');
    expect([code, stdout]).toEqual([4, expect.stringContaining('main/sales: action needed: failed')]);
    await db.query({ text: `delete from tributary.runs where id like 'down-%'` });
  });

  it('reports the refusal of a source once, not once per stream and sink', async () => {
    await db.query({
      text: `update tributary.runs set state = 'refused', message = 'the plan is too low',
          started_at = started_at - case stream when 'sales' then interval '3 minutes' else interval '0' end
        where kind = 'sync'`,
    });
    const { code, stdout } = await tributary('status', '--check');
    expect(code).toBe(4);
    expect(stdout.match(/the plan is too low/g)).toHaveLength(1);
    expect(stdout).toMatch(/^main: action needed: parked$/m);
  });
});

describe('query', () => {
  const clicks = async (): Promise<number> => (await db.query({ text: 'select from attribution.clicks' })).length;

  it('asks the tables', async () => {
    const { code, stdout } = await tributary('query', 'select count(*) as n from attribution.clicks;', '--json');
    const n = await clicks();
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { command: 'query', rows: [{ n }], isCut: false }]);
    const { stdout: twice } = await tributary(
      'query',
      'select count(*), count(distinct event_id) from attribution.clicks',
    );
    expect(twice).toMatch(/count +count_2\n/);
    const pasted = await tributary('query', '-- 1. As on a page of the docs.\nselect 7 as n;\n-- 7');
    expect([pasted.code, pasted.stdout]).toEqual([0, 'n\n─\n7\n']);
    const cut = await tributary('query', 'select event_id from attribution.clicks order by 1', '--limit', '2');
    expect(cut.stdout).toMatch(/^event_id\n─+\n\S+\n\S+\n\nthe first 2 rows; --limit shows more\n$/);
  });

  it.each([
    ['delete from attribution.clicks', /^query is read-only, and this statement would write\n/],
    ['with gone as (delete from attribution.clicks returning 1) select * from gone', /^query is read-only/],
    ['select 1; commit; delete from attribution.clicks', /^the query has more than one statement\n/],
    ['select 1; select 2', /^the query has more than one statement\n/],
    ['/* a note */ -- and one\n DROP table attribution.clicks', /^query is read-only/],
    ['selec 1', /^syntax error at or near "selec"/],
    ['select nothing', /^column "nothing" does not exist/],
  ])('%s is refused with the reason', async (sql, says) => {
    const before = await clicks();
    const { code, stderr } = await tributary('query', sql);
    expect([code, stderr]).toEqual([2, expect.stringMatching(says)]);
    expect(await clicks()).toBe(before);
  });
});

describe('dates', () => {
  it('--to defaults to now, and a dry run with nothing to do says so', async () => {
    const { code, stdout } = await withKey('backfill', 'leads', '--from', '5d', '--to', 'yesterday', '--dry-run');
    expect(code).toBe(0);
    expect(stdout).toContain('nothing to do: the range is already certified; --force reads it again');
    expect(stdout).not.toContain('next: the same without');
    const forced = await withKey('backfill', 'leads', '--from', '5d', '--force', '--dry-run');
    expect(forced.stdout).toContain('next: the same without --dry-run; certified windows are read again');
  });
});

it('-v prints the version, as -V does', async () => {
  const [small, large] = [await place.call(['-v']), await place.call(['-V'])];
  expect(small.stdout).toMatch(/^\d+\.\d+\.\d+/);
  expect(large.stdout).toBe(small.stdout);
});
