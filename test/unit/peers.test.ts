import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Result } from '../../bench/peers/measure.ts';
import { pinned } from '../../bench/peers/python.ts';
import { tables, withReport } from '../../bench/peers/report.ts';
import { singer } from '../../bench/peers/singer.ts';
import { tributary } from '../../bench/peers/tributary.ts';
import { watch } from '../../bench/peers/watched.ts';

/** The parts of `npm run bench:peers` that need no Python. */

const PINS = ['requirements.txt', 'requirements-parquet.txt'];
const setting = { server: 'calm', rows: 8000, perSecond: 4 } as const;
const figures = { lost: 0, doubled: 0, requests: 9, refused: 0, rowsPerSecond: 1000, cpuSeconds: 71.6, peakMb: 150 };

describe('the benchmark against dlt and Singer', () => {
  it.each(PINS)('names an exact version for all that %s lists', async (file) => {
    const text = await readFile(`bench/peers/${file}`, 'utf8');
    const listed = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(listed.filter((line) => !/(==\d+(\.\d+)+|@[0-9a-f]{40})$/.test(line))).toEqual([]);
    expect((await pinned(file)).size).toBe(listed.length);
  });

  it('compares speed with Tributary on the same service and kind of destination', () => {
    const results: Result[] = [
      { tool: tributary('Parquet'), setting, figures: { ...figures, rowsPerSecond: 50 } },
      { tool: tributary('Postgres'), setting: { ...setting, server: 'difficult' }, figures },
      { tool: tributary('Postgres'), setting, figures: { ...figures, rowsPerSecond: 2000 } },
      { tool: singer('Postgres'), setting, figures: { ...figures, lost: 1234, refused: 2 } },
      { tool: singer('Parquet'), setting, failure: 'no such target' },
    ];
    const text = tables(results);
    expect(text).toContain('### 8,000 leads, 4 requests a second');
    expect(text).toContain('| calm | Singer | Postgres | 1,234 | 0 | 9 | 2 | 0.50 | 72 | 150 MB |');
    expect(text).toContain('| calm | Singer | Parquet | its sync failed |');
  });

  it('finds its marks in bench/peers/results.md, and writes only there', async () => {
    const page = await readFile('bench/peers/results.md', 'utf8');
    const written = withReport(page, 'a new table');
    expect(written).toContain('a new table');
    expect(withReport(written, 'another')).toBe(withReport(page, 'another'));
  });

  it('counts the memory and CPU time of both programs of a pipe, and reports the failure of either', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'tributary-peers-'));
    onTestFinished(() => rm(dir, { recursive: true }));
    const node = (script: string): string => `'${process.execPath}' -e '${script}'`;
    const holding = 'const held = Buffer.alloc(80 * 2 ** 20, 1);';
    // The first holds its memory until the second runs too, and a few samples longer; the second as long as the first.
    const first = `${holding} const wait = () => setTimeout(fs.existsSync("there") ? process.exit : wait, 700, 0); wait();`;
    const second = `${holding} fs.writeFileSync("there", ""); process.stdin.resume();`;
    const both = await watch({ line: `${node(first)} | ${node(second)}`, dir, env: {} });
    expect(both.failed).toBe(false);
    // Twice 80 MB and two bare programs; one alone would be below. Without /proc there is no figure.
    expect(both.peakMb ?? 201).toBeGreaterThan(200);
    expect((await watch({ line: 'false | cat', dir, env: {} })).failed).toBe(true);
    const busy = node('while (process.cpuUsage().user < 3e5);');
    const { cpuSeconds, said } = await watch({ line: `${busy} | ${busy} && echo done`, dir, env: {} });
    expect(cpuSeconds).toBeGreaterThan(0.6);
    expect(cpuSeconds).toBeLessThan(3);
    expect(said).toBe('done\n');
  });
});
