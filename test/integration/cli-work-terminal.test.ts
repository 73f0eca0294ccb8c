import { describe, expect, it } from 'vitest';
import { longLines } from '../support/cli.ts';
import { commandsOn } from '../support/commands.ts';
import { plain, runOnTerminal } from '../support/pty.ts';

/** What remains on the screen: the last form of a rewritten line. */
const settled = (text: string): string =>
  plain(
    text
      .split('\n')
      .map((line) => line.split('\r\x1b[2K').at(-1) ?? '')
      .join('\n'),
  );

const { place } = await commandsOn(
  { days: 20 },
  {
    settings: { since: '10d', requestsPerSecond: 100 },
    rest: {
      sinks: {
        warehouse: { type: 'postgres' },
        lake: { type: 'parquet', path: 'lake' },
        tables: { type: 'iceberg', warehouse: 'tables' },
      },
    },
  },
);

/** Commands that read and write, on a real terminal and in a pipe, one after the other on the same data. */
describe('a command', () => {
  const both = async (...args: string[]) => {
    const line = [...args, '--config', 't.yaml'];
    return { seen: await runOnTerminal(place, line), piped: await place.run(line) };
  };

  it.each([
    { args: ['sync'], says: /^main\/sales +\d/m },
    { args: ['backfill', '--from', '18d', '--to', '12d', '--plan'], says: /^main\/clicks +1 +0% +\d/m },
    { args: ['backfill', '--from', '18d', '--to', '12d'], says: /^main\/clicks +[\d,]+ /m },
    { args: ['backfill', '--from', '9d', '--to', '8d', '--queue'], says: /^main\/clicks: \d{14}-\w{6}, windows: \d/m },
    { args: ['backfill', 'list'], says: /^\d{14}-\w{6} +main\/clicks .*(queued|done)/m },
    { args: ['verify', '--from', '9d', '--to', '2d'], says: /^ {2}lake: all 8 days match$/m },
    {
      args: ['verify', '--from', '9d', '--to', '2d', '--between', 'warehouse', 'lake'],
      says: /^ {2}lake: all \d+ days match/m,
    },
    {
      args: ['export', 'leads', '--from', '5d', '--to', '1d', '--out', 'l.csv', '--force'],
      says: /^certified: every event/m,
    },
    { args: ['maintain'], says: /^tables +attribution\.clicks +\d/m },
    { args: ['forget', '--source', 'main', '--everything', '--dry-run'], says: /^lake: clicks +[\d,]+$/m },
    { args: ['forget', '--source', 'main', '--click', 'nobody', '--unseen', '--yes'], says: /clicks/ },
  ])('$args', async ({ args, says }) => {
    const { seen, piped } = await both(...args);
    expect([seen.code, piped.code], `${seen.text}\n${piped.text}`).toEqual([0, 0]);
    expect(settled(seen.text)).toMatch(says);
    expect(piped.stdout).toMatch(says);
    // A pipe gets no escape codes and no rewritten line.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape codes begin with one
    expect(piped.text).not.toMatch(/[\x1b\r]/);
    expect(longLines(settled(seen.text))).toEqual([]);
  });

  it.each([
    { args: ['forget', '--source', 'main', '--everything'], asks: 'Erase everything of main from' },
    { args: ['cursor', 'reset', 'leads'], asks: 'Reset main/leads' },
  ])('$args asks first, and does nothing without a y', async ({ args, asks }) => {
    const line = [...args, '--config', 't.yaml'];
    const before = (await place.run(['cursor', 'get', '--config', 't.yaml'])).stdout;
    const refused = await runOnTerminal(place, line, { typed: [{ after: '[y/N] ', type: '\r' }] });
    expect(refused.code, refused.text).toBe(130);
    expect(plain(refused.text)).toContain(asks);
    expect(plain(refused.text)).toMatch(/not confirmed\nkept: everything; nothing was changed\n/);
    const dry = await place.run([...line, '--dry-run']);
    expect([dry.code, dry.text]).toEqual([0, expect.stringContaining('nothing was changed')]);
    expect((await place.run(['cursor', 'get', '--config', 't.yaml'])).stdout).toBe(before);
    const done = await runOnTerminal(place, line, { typed: [{ after: '[y/N] ', type: 'y\r' }] });
    expect(done.code, done.text).toBe(0);
    expect((await place.run(['cursor', 'get', '--config', 't.yaml'])).stdout).not.toBe(before);
    expect((await place.run(['sync', '--config', 't.yaml'])).code).toBe(0);
  });

  it('refuses wrong input alike on both, and writes nothing', async () => {
    for (const args of [
      ['backfill', '--from', 'last week', '--to', 'now'],
      ['verify', '--from', '1d', '--to', '2d'],
      ['export', 'leads', '--from', '2d', '--to', '1d', '--out', 'x.pdf'],
      ['verify', '--from', '2d', '--to', '1d', '--between', 'warehouse', 'nowhere'],
      ['runs', '--state', 'bogus'],
      ['quarantine', 'drop', '--all', '--source', 'nobody'],
    ]) {
      const { seen, piped } = await both(...args);
      expect([seen.code, piped.code]).toEqual([2, 2]);
      expect(piped.stderr).toMatch(/\nnext: /);
      // The terminal wraps long lines.
      expect(longLines(plain(seen.text))).toEqual([]);
      const withoutClock = (text: string): string =>
        text
          .trim()
          .replaceAll(/T[\d:.]+Z/g, '')
          .replaceAll(/\n? +/g, ' ');
      expect(withoutClock(plain(seen.text))).toBe(withoutClock(piped.stderr));
    }
  });
});
