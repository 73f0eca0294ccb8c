import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { SECTIONS } from '../../bench/sections.ts';
import { inTurns, median, ratioOf } from '../../bench/support/measure.ts';
import { readOptions } from '../../bench/support/options.ts';
import { barTable, intoDocument, isMet, toMarkdown } from '../../bench/support/report.ts';

/** The bench takes minutes; these tests check in seconds that it runs and that its figures have a place. */

const bench = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['--import', 'tsx', 'bench/bench.ts', ...args]);

describe('the bench', () => {
  it('runs a section in its quick form, and prints its results with the load of the machine', async () => {
    const { stdout } = await bench('--quick', '--only', 'b');
    expect(stdout).toMatch(/^\| calm \| 4,000 \| 7 \| 1\.750 \| 0 \| yes \|$/m);
    expect(stdout).toMatch(
      /load \d+\.\d before and \d+\.\d after on \d+ cores, \d+% of their time stolen by the host, \d+\.\d minutes/,
    );
    expect(stdout).not.toMatch(/^\((?!b\))[a-i]\)/m);
  });

  it('can load every section', async () => {
    const titles = await Promise.all(Object.values(SECTIONS).map(async (load) => (await load()).title));
    expect(new Set(titles).size).toBe(10);
  });

  it('refuses an unknown section, and quick figures for the document', () => {
    const known = Object.keys(SECTIONS);
    expect(readOptions([], known)).toEqual({ ids: known, size: 'whole', isWritten: false });
    expect(readOptions(['--quick', '--only', 'c,d'], known)).toMatchObject({ ids: ['c', 'd'], size: 'quick' });
    expect(() => readOptions(['--only', 'x'], known)).toThrow('no section x');
    expect(() => readOptions(['--quick', '--write'], known)).toThrow('quick figures are no figures');
  });

  it('finds a place in the document for every section', () => {
    const document = readFileSync('bench/results.md', 'utf8');
    for (const id of Object.keys(SECTIONS))
      expect(intoDocument(document, id, 'new figures')).toContain(`-->\nnew figures\n<!--`);
    expect(() => intoDocument(document, 'z', '')).toThrow('no place for section z');
  });

  it('changes nothing in the document but the figures', () => {
    const before = 'a\n<!-- bench a -->\nold\n<!-- end of bench a -->\nb\n';
    expect(intoDocument(before, 'a', 'new')).toBe('a\n<!-- bench a -->\nnew\n<!-- end of bench a -->\nb\n');
  });

  it('computes whether a bar is met', () => {
    expect(isMet({ says: '', measured: 0.6, least: 0.6 })).toBe(true);
    expect(isMet({ says: '', measured: 0.59, least: 0.6 })).toBe(false);
    expect(isMet({ says: '', measured: 1.1, most: 1 })).toBe(false);
    expect(isMet({ says: '', measured: Number.NaN, least: 0, most: 1 })).toBe(false);
    const text = toMarkdown({ tables: [], bars: [{ says: 'speed', measured: 0.5, least: 0.6 }] });
    expect(text).toBe('- speed: at least 0.6; here 0.50: **not met**');
  });

  it('shows all bars at the end as ratios, and a bar of 0 as it is', () => {
    const bars = [
      { says: '(e) MB', measured: 330, most: 300 },
      { says: '(c) speed', measured: 0.9, least: 0.6 },
      { says: '(a) 429s', measured: 2, most: 0 },
    ];
    expect(barTable(bars).rows).toEqual([
      ['(e) MB', 'at most 300', '1.10', '**not met**'],
      ['(c) speed', 'at least 0.6', '1.50', '**met**'],
      ['(a) 429s', 'at most 0', '2.00', '**not met**'],
    ]);
    expect(readFileSync('bench/results.md', 'utf8')).toContain('<!-- bench bars -->');
  });

  it('alternates, and compares within each round', async () => {
    const order: string[] = [];
    const work = (name: string, times: number[]) => async () => {
      order.push(name);
      return times.shift() ?? 0;
    };
    const found = await inTurns(3, { a: work('a', [1, 10, 3]), b: work('b', [2, 20, 3]) });
    expect(order.join('')).toBe('ababab');
    expect(ratioOf(found.a, found.b)).toBe(0.5);
    expect([median([3, 1, 2]), median([4, 1, 2, 3])]).toEqual([2, 2.5]);
  });
});
