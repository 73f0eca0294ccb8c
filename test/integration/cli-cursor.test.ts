import { beforeAll, describe, expect, it } from 'vitest';
import { acquireLease } from '../../src/cursor/leases.ts';
import { BY_HAND } from '../../src/sync/maintain/move-cursor.ts';
import { longLines } from '../support/cli.ts';
import { commandsOn } from '../support/commands.ts';
import { plain, runOnTerminal } from '../support/pty.ts';

const DAY = 86_400_000;
const { place, sandbox, db, tributary } = await commandsOn(
  { rows: { clicks: 60, leads: 40, sales: 30 }, days: 20 },
  { rest: { sinks: { warehouse: { type: 'postgres' }, copy: { type: 'postgres', schema: 'copy' } } } },
);

beforeAll(async () => expect((await tributary('sync')).code).toBe(0));

interface Json {
  cursors: Array<{ stream: string; sink: string; completeThrough: string | null; since: string }>;
}
const cursors = async (...args: string[]): Promise<Json['cursors']> => {
  const { code, stdout, stderr } = await tributary('cursor', ...args, '--json');
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as Json).cursors;
};
const rowsOf = async (table: string): Promise<object[]> =>
  db.query({ text: `select event_id from ${table} order by 1` });

describe('cursor', () => {
  it('get shows every stream in every sink, within 80 columns and in UTC', async () => {
    const { code, stdout, stderr } = await tributary('cursor', 'get');
    expect([code, stderr, longLines(stdout)]).toEqual([0, '', []]);
    expect(
      stdout.match(/^main\/(clicks|leads|sales) +(copy|warehouse) +\d{4}-\d\d-\d\d +\d{4}-\d\d-\d\d \d\d:\d\d /gm),
    ).toHaveLength(6);
    expect(stdout).toMatch(/times in UTC\n$/);
    expect(plain((await runOnTerminal(place, ['cursor', 'get', '--config', 't.yaml'])).text)).toBe(stdout);
  });

  it('set to an earlier time marks everything after it as unread in every sink, and touches no row', async () => {
    const [leads, asked] = [await rowsOf('copy.leads'), sandbox.service.log.entries.length];
    const to = new Date(Date.now() - 5 * DAY).toISOString();
    const moved = await cursors('set', 'leads', '--to', to);
    expect(moved.map(({ sink, completeThrough }) => [sink, completeThrough])).toEqual([
      ['copy', to],
      ['warehouse', to],
    ]);
    const later = await db.query({
      text: `select 1 from tributary.windows where stream = 'leads' and end_at > $1`,
      values: [to],
    });
    expect([later, await rowsOf('copy.leads')]).toEqual([[], leads]);
    expect(sandbox.service.log.entries).toHaveLength(asked);
    // The sync finds events that arrived late, behind the old watermark.
    sandbox.service.arrive('leads', 3, { from: Date.now() - 4 * DAY, to: Date.now() - 4 * DAY + 1000 });
    expect((await tributary('sync', 'leads')).code).toBe(0);
    expect(await rowsOf('copy.leads')).toHaveLength(leads.length + 3);
    const [again] = await cursors('get', 'leads');
    expect(Date.parse(again?.completeThrough ?? '')).toBeGreaterThan(Date.now() - DAY);
  });

  it('set to a later time is refused: the time between was never read', async () => {
    await cursors('set', 'sales', '--to', '9d', '--sink', 'copy');
    const { code, stdout, stderr } = await tributary('cursor', 'set', 'sales', '--to', '2d', '--sink', 'copy');
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(
      /^main\/sales: \S+ \S+ UTC is after the watermark, \S+ \S+ UTC: the time in between is not certified\nkept: nothing was changed\nnext: .*--force/,
    );
    const [unmoved] = await cursors('get', 'sales', '--sink', 'copy');
    expect(Date.parse(unmoved?.completeThrough ?? '')).toBeLessThan(Date.now() - 8 * DAY);
  });

  it('set to a later time by force warns, and the ledger and the status record it permanently', async () => {
    await cursors('set', 'sales', '--to', '10d', '--sink', 'copy');
    const { code, stdout, stderr } = await tributary(
      'cursor',
      'set',
      'sales',
      '--to',
      '2d',
      '--sink',
      'copy',
      '--force',
    );
    expect([code, stderr]).toEqual([0, 'warning: --force gives up the proof: events may be missing permanently\n']);
    expect(stdout).toMatch(/^main\/sales +copy +\d{4}-\S+ \S+ +\d{4}-\S+ \S+$/m);
    const noted = await db.query({ text: 'select sink from tributary.windows where note = $1', values: [BY_HAND] });
    expect(noted).toEqual([{ sink: 'copy' }]);
    expect((await tributary('status')).stdout).toContain(
      'main/sales: windows marked complete by hand in copy, never read: 1\n',
    );
  });

  it.each([
    [['set', 'clicks', '--to', '400d'], 'is before the start of this stream'],
    [['set', 'clicks', '--to', '2999-01-01'], '--to is in the future'],
    [['set', 'clicks', '--to', 'last week'], '--to is not a date'],
    [['set', 'clicks'], "required option '--to <DATE>' not specified"],
    [['reset', 'clicks', '--source', 'other'], 'there is no source "other"'],
    [['reset', 'clicks', '--sink', 'warehouse'], 'this cannot be undone, and there is no terminal for a prompt'],
    [['reset', 'clicks', '--sink', 'lake'], 'there is no cursor of clicks that matches'],
    [['reset'], "missing required argument 'stream'"],
    [['rest'], "unknown command 'rest'\n(Did you mean reset?)\nnext: see tributary cursor --help"],
  ])('%j is refused', async (args, message) => {
    const { code, stderr } = await tributary('cursor', ...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  it('cannot be moved during a sync', async () => {
    const lease = await acquireLease(db, 'main', 'clicks', 'tributary sync (process 1 on elsewhere)');
    for (const args of [
      ['set', 'clicks', '--to', '1d'],
      ['reset', 'clicks', '--yes'],
    ]) {
      const { code, stderr } = await tributary('cursor', ...args);
      expect([code, stderr]).toEqual([
        4,
        expect.stringContaining('tributary sync (process 1 on elsewhere) is writing'),
      ]);
    }
    await lease.release();
    expect(await cursors('get', 'clicks')).toHaveLength(2);
  });

  it('reset forgets one stream in one sink; its rows stay, and the next sync certifies it again', async () => {
    const clicks = await rowsOf('copy.clicks');
    expect((await cursors('reset', 'clicks', '--sink', 'copy', '--yes')).map(({ sink }) => sink)).toEqual([]);
    expect((await cursors('get', 'clicks')).map(({ sink }) => sink)).toEqual(['warehouse']);
    expect(await rowsOf('copy.clicks')).toEqual(clicks);
    expect((await tributary('status')).stdout).not.toMatch(/main\/clicks copy/);
    expect((await tributary('sync', 'clicks')).code).toBe(0);
    expect((await cursors('get', 'clicks')).map(({ sink }) => sink)).toEqual(['copy', 'warehouse']);
    expect(await rowsOf('copy.clicks')).toEqual(clicks);
  });
});

describe('runs', () => {
  interface Runs {
    runs: Array<{ stream: string; state: string; kind: string; startedAt: string; requests: number }>;
  }
  const runs = async (...args: string[]): Promise<Runs['runs']> =>
    (JSON.parse((await tributary('runs', '--json', ...args)).stdout) as Runs).runs;

  it('are listed newest first and distinguishable', async () => {
    const all = await runs();
    expect(all.length).toBeGreaterThan(4);
    expect(all.map(({ startedAt }) => startedAt)).toEqual(
      all
        .map(({ startedAt }) => startedAt)
        .sort()
        .reverse(),
    );
    expect((await runs('--stream', 'leads')).map(({ stream }) => stream)).toEqual(['leads', 'leads']);
    expect(await runs('--limit', '1')).toEqual(all.slice(0, 1));
    expect(await runs('--state', 'refused')).toEqual([]);
    expect(await runs('--since', '2999-01-01')).toEqual([]);
  });

  it('suggest how to fix a wrong filter', async () => {
    const { code, stderr } = await tributary('runs', '--state', 'dome');
    expect([code, stderr]).toEqual([2, expect.stringContaining('Allowed choices are running, done, incomplete')]);
  });

  it('show each reason for failure once, within 80 columns with kind, requests and duration', async () => {
    const reason =
      'not proven complete: 2026-11-01 00:00 to 2026-11-02 00:00 UTC (exclusive): rows of one instant do not fit';
    for (const [i, kind] of ['repair', 're-sweep', 're-sweep'].entries()) {
      await db.query({
        text: `insert into tributary.runs (id, kind, source, stream, state, started_at, finished_at, message, rows_read, rows_changed)
          values ($1, $2, 'main', 'sales', 'incomplete', now() - interval '1 hour', now(), $3, 123456, 1234)`,
        values: [`odd-${i}`, kind, kind === 'repair' ? 'the service closed the connection' : reason],
      });
    }
    const { stdout } = await tributary('runs');
    await db.query({ text: `delete from tributary.runs where id like 'odd-%'` });
    expect(longLines(stdout)).toEqual([]);
    expect(stdout).toMatch(/^started +kind .* req +took/);
    expect(stdout).toMatch(/ re-sweep +main\/sales +incomplete +123,456 +0 +0 +60 min/);
    const text = stdout.replace(/\s+/g, ' ');
    expect(text.split(reason)).toHaveLength(2);
    expect(text).toMatch(/ and 1 before, main\/sales incomplete: not proven/);
    expect(text).toContain('main/sales incomplete: the service closed the connection');
  });

  it('look the same on a terminal, within 80 columns', async () => {
    const { code, text } = await runOnTerminal(place, ['runs', '--config', 't.yaml']);
    expect([code, longLines(plain(text))]).toEqual([0, []]);
    expect(plain(text)).toBe((await tributary('runs')).stdout);
  });
});
