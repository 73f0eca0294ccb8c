import { beforeAll, describe, expect, it } from 'vitest';
import { acquireLease } from '../../src/cursor/leases.ts';
import { quarantine } from '../../src/cursor/quarantine.ts';
import { type Finished, longLines } from '../support/cli.ts';
import { commandsOn } from '../support/commands.ts';
import { plain, runOnTerminal } from '../support/pty.ts';

const { place, db, url, tributary } = await commandsOn(
  { rows: { clicks: 10, leads: 10, sales: 10 }, days: 5 },
  {
    rest: (url) => ({
      sinks: {
        warehouse: { type: 'postgres' },
        copy: { type: 'postgres', url: `${url}?application_name=copy`, schema: 'copy' },
      },
      privacy: { linkPassword: 'keep' },
    }),
  },
);

const PASSWORD = 'canary-password';
const lead = (eventId: string, more: object = {}) => ({
  event: 'lead',
  eventId,
  eventName: 'Sign up',
  amount: 9_007_199_254_740_993n,
  click: { id: 'c-1', ip: '203.0.113.9' },
  link: { id: 'l-1', password: PASSWORD, domain: 'acme.link', key: 'x' },
  customer: { id: 'cus-1', name: 'Ada Example', email: 'ada@example.org' },
  ...more,
});
const SOUND = { timestamp: '2026-11-10T10:00:00Z' };

beforeAll(async () => {
  expect((await tributary('sync')).code).toBe(0);
  // One that an older version could not use and this one can, and one that is still invalid.
  const records = [lead('sound', SOUND), lead('bad')];
  await quarantine(
    db,
    { source: 'main', stream: 'leads', runId: '20261114T120000-00000001' },
    records.map((record) => ({ record, reason: 'the record has no time: `timestamp` is missing or cannot be read' })),
  );
});

const aside = async (...args: string[]): Promise<Finished> => {
  const ended = await tributary('quarantine', ...args);
  expect(ended.text).not.toContain(PASSWORD);
  return ended;
};

describe('quarantine', () => {
  it('list says what was set aside and why, within 80 columns', async () => {
    const { code, stdout, stderr } = await aside('list');
    expect([code, stderr, longLines(stdout)]).toEqual([0, '', []]);
    expect(stdout).toMatch(/^ *\d +main\/leads +\d{4}-\d\d-\d\d \d\d:\d\d +the record has no time.*…$/m);
    const { text } = await runOnTerminal(place, ['quarantine', 'list', '--config', 't.yaml']);
    expect(plain(text)).toBe(stdout);
    expect(JSON.parse((await aside('list', '--json', '--limit', '1')).stdout)).toMatchObject({
      total: 2,
      records: [{ source: 'main', stream: 'leads', run: '20261114T120000-00000001' }],
    });
  });

  it('show masks personal data unless --raw is given, and keeps large numbers exact', async () => {
    const masked = await aside('show', '1');
    expect(masked.code, masked.text).toBe(0);
    for (const personal of ['203.0.113.9', 'Ada', 'ada@example.org']) expect(masked.text).not.toContain(personal);
    expect(masked.stdout).toContain('"eventId": "sound"');
    expect(masked.stdout).toContain('"amount": 9007199254740993');
    const raw = await aside('show', '1', '--raw', '--json');
    expect(raw.stdout).toContain('"email": "ada@example.org"');
    expect(raw.stdout).toContain('"amount": 9007199254740993');
  });

  it.each([
    [['show', '99'], 'there is no record 99 in quarantine'],
    [['show', 'first'], 'an id must be a number'],
    [['retry'], 'no records were named'],
    [['retry', '1', '--all'], 'no records were named'],
    [['drop', '1', '99'], 'there is no record 99 in quarantine'],
  ])('%j is refused without effect', async (args, message) => {
    const { code, stderr } = await aside(...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(await db.query({ text: 'select 1 from tributary.quarantine' })).toHaveLength(2);
  });

  it('retry skips a stream that is being written, and does not wait', async () => {
    const lease = await acquireLease(db, 'main', 'leads', 'tributary sync (process 1 on elsewhere)');
    expect(await aside('retry', '1')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('is writing this stream'),
    });
    await lease.release();
    expect(await db.query({ text: 'select 1 from tributary.quarantine' })).toHaveLength(2);
  });

  it('retry keeps a record that no sink accepts', async () => {
    await place.config(`sinks: { fresh: { type: postgres, schema: fresh } }\nstate: { url: "${url}" }\n`, 'fresh.yaml');
    const ended = await place.call(['quarantine', 'retry', '1', '--config', 'fresh.yaml']);
    expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining('kept: the records stay where they are') });
    expect(await db.query({ text: 'select 1 from tributary.quarantine' })).toHaveLength(2);
  });

  it('retry writes valid records into every sink, and keeps the rest with their reason', async () => {
    const watermark = { text: `select complete_through from tributary.cursors where stream = 'leads' order by sink` };
    const before = await db.query(watermark);
    const { code, stdout } = await aside('retry', '--all');
    expect([code, stdout]).toEqual([
      4,
      expect.stringMatching(/^1 record written, 1 still unusable\n2: the record has no time/),
    ]);
    for (const schema of ['attribution', 'copy']) {
      const rows = await db.query({
        text: `select customer_id, link_password, _run_id from ${schema}.leads where event_id = 'sound'`,
      });
      // The redacted value is unknown; its placeholder is not stored as a password.
      expect(rows).toEqual([{ customer_id: 'cus-1', link_password: null, _run_id: expect.any(String) }]);
    }
    const left = await db.query({ text: 'select id from tributary.quarantine' });
    expect(left).toEqual([{ id: 2 }]);
    const [run] = await db.query({
      text: `select kind, state, rows_new from tributary.runs where kind = 'retry' order by started_at desc`,
    });
    expect(run).toEqual({ kind: 'retry', state: 'done', rows_new: 1 });
    // Rows prove nothing about the time around them.
    expect(await db.query(watermark)).toEqual(before);
  });

  it('drop deletes', async () => {
    expect(await aside('drop', '2')).toMatchObject({ code: 0, stdout: '1 record dropped\n' });
    expect((await aside('list')).stdout).toBe('nothing was set aside\n');
  });
});
