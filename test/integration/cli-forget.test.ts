import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { type Finished, freshPlace, type Place } from '../support/cli.ts';
import { dump, linesWith } from '../support/dump.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';

const ID = 'cus_4tHcanary';

describe('tributary forget', () => {
  let place: Place;
  let database: TestDatabase;
  let db: Database;

  beforeAll(async () => {
    const rows = { clicks: 40, leads: 10, sales: 5 };
    const [sandbox, ...rest] = await Promise.all([smallSandbox({ rows, days: 5 }), freshPlace(), freshDatabase()]);
    [place, database] = rest;
    db = connect({ url: database.url, max: 2 });
    const [lead] = sandbox.service.events('leads');
    sandbox.service.add('leads', { ...lead, eventId: 'e-canary', customer: { id: ID, name: 'Ada' } });
    const source = `{ baseUrl: "${sandbox.baseUrl}", apiKey: ${sandbox.apiKey}, plan: enterprise, requestsPerSecond: 100 }`;
    await place.config(`sources: { main: ${source}, other: ${source} }\nstate: { url: "\${DATABASE_URL}" }\n`);
    await place.config(`sources: { other: ${source} }\nstate: { url: "\${DATABASE_URL}" }\n`, 'without-main.yaml');
  });
  afterAll(async () => {
    await db.close();
    await database.drop();
  });

  const run = (args: readonly string[], config = 't.yaml'): Promise<Finished> =>
    place.run([...args, '--config', config], { DATABASE_URL: database.url, TRIBUTARY_LOG: 'trace' });
  const forget = (...args: string[]): Promise<Finished> => run(['forget', ...args]);

  const exported = (source: string): Promise<Finished> =>
    run(['export', 'leads', '--source', source, '--from', '40d', '--to', 'now', '--out', '-']);

  it('an export with an empty state has every customer, and leaves the state empty', async () => {
    expect((await exported('main')).stdout).toContain('"customer_name":"Ada"');
    expect(await db.query({ text: `select to_regnamespace('tributary') is null as untouched` })).toEqual([
      { untouched: true },
    ]);
  });

  it('before any sync finds nothing, and still records the id', async () => {
    // A mistyped id would be excluded forever.
    const typo = await forget('--source', 'main', '--customer', ID, '--yes');
    expect([typo.code, typo.stdout]).toEqual([2, '']);
    expect(typo.stderr).toMatch(/^no event of the source has this customer\nkept: everything; nothing was changed\n/);
    const preview = await forget('--source', 'main', '--customer', ID, '--dry-run');
    expect([preview.code, preview.stderr]).toEqual([typo.code, typo.stderr]);
    expect(await db.query({ text: 'select from tributary.forgotten' })).toEqual([]);
    const { code, stdout, text } = await forget('--source', 'main', '--customer', ID, '--unseen', '--yes');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^no row had this customer; if one appears, later syncs leave it out$/m);
    expect(text).not.toContain(ID);
    expect((await run(['sync'])).code).toBe(0);
    const rows = await db.query({
      text: `select _source, customer_name from attribution.leads where event_id = 'e-canary' order by 1`,
    });
    expect(rows).toEqual([
      { _source: 'main', customer_name: null },
      { _source: 'other', customer_name: 'Ada' },
    ]);
  });

  it('an export omits forgotten customers, as the tables do', async () => {
    const [main, other] = [await exported('main'), await exported('other')];
    expect([main.code, other.code]).toEqual([0, 0]);
    expect(main.stdout).toContain('"event_id":"e-canary"');
    expect(main.stdout).not.toMatch(/Ada|cus_4tHcanary/);
    expect(other.stdout).toContain('"customer_name":"Ada"');
  });

  it('reports what it touched, as text and as JSON, and never the id', async () => {
    const preview = await forget('--source', 'other', '--customer', ID, '--dry-run', '--json');
    const people = await forget('--source', 'other', '--customer', ID, '--yes');
    const { touched } = JSON.parse(preview.stdout) as { touched: Record<string, number> };
    expect(
      Object.entries(touched).filter(([place, rows]) => !people.stdout.match(new RegExp(`^${place} +${rows}$`, 'm'))),
    ).toEqual([]);
    expect(touched).toMatchObject({ 'attribution.customers': 1, 'attribution.leads': 1, 'tributary.quarantine': 0 });
    expect(people.code).toBe(0);
    expect(people.stdout).toMatch(/^attribution\.leads +1$/m);
    expect(people.stdout).toMatch(/^attribution\.customers +1$/m);
    expect(people.stdout).toMatch(/^the customer is forgotten, and later syncs leave it out$/m);
    const machines = await forget('--source', 'other', '--click', 'no-such-click', '--json', '--unseen', '--yes');
    expect(machines.code).toBe(0);
    expect(JSON.parse(machines.stdout)).toEqual({
      format: 1,
      command: 'forget',
      error: null,
      touched: { 'attribution.clicks': 0, 'attribution.leads': 0, 'attribution.sales': 0, 'tributary.quarantine': 0 },
    });
    expect(people.text + machines.text).not.toMatch(/canary|no-such-click/);
    expect(linesWith(await dump(db), ID)).toEqual([]);
  });

  it.each<[string, string[], RegExp]>([
    ['no source', ['--customer', 'c'], /--source <NAME>/],
    [
      'nothing to forget',
      ['--source', 'main'],
      /^name exactly one thing to forget\nnext: give one of --customer ID, --click ID or/,
    ],
    ['two subjects', ['--source', 'main', '--customer', 'c', '--click', 'd'], /^name exactly one thing to forget/],
    [
      'no terminal and no --yes',
      ['--source', 'main', '--everything'],
      /^this cannot be undone, and there is no terminal/,
    ],
    ['an empty id', ['--source', 'main', '--customer', ''], /^the id is empty/],
    [
      'an unknown source',
      ['--source', 'mian', '--everything'],
      /^there is no source "mian", neither in the config nor in the state\nnext: use one of: main, other$/m,
    ],
    ['an unknown option', ['--source', 'main', '--all'], /--all/],
  ])('usage: %s', async (_what, args, message) => {
    const { code, stdout, stderr } = await forget(...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(message);
  });

  it('removes a source, even one that the config no longer has', async () => {
    const { code, stdout, stderr } = await forget('--source', 'other', '--everything', '--yes');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^attribution\.clicks +40$/m);
    expect(stdout).toMatch(/^the source was removed$/m);
    expect(stderr).toContain('note: other is still in the config: the next sync reads it again\n');
    expect([await count('other'), await count('main')]).toEqual([0, 40]);

    const second = await run(['forget', '--source', 'main', '--everything', '--yes'], 'without-main.yaml');
    expect([second.code, second.stderr.includes('note:')]).toEqual([0, false]);
    expect(await count('main')).toBe(0);
  });

  const count = async (source: string): Promise<number> => {
    const found = await db.query({ text: 'select from attribution.clicks where _source = $1', values: [source] });
    return found.length;
  };
});
