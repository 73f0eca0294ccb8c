import { readFile, writeFile } from 'node:fs/promises';
import { availableParallelism, loadavg } from 'node:os';
import type { Result, Setting } from './measure.ts';
import { here, pinned, pythonVersion } from './python.ts';
import type { Python } from './tool.ts';

const PAGE = here('results.md');
const BEGIN = '<!-- measured: npm run bench:peers -- --write -->';
const END = '<!-- end -->';
const HEADER = [
  '| service | tool | into | rows lost | rows doubled | requests | 429s | rows/s, Tributary = 1 | CPU s a million rows | peak memory |',
  '|---|---|---|---|---|---|---|---|---|---|',
];

/** A table for each limit. */
export function tables(results: readonly Result[]): string {
  const limits = [...new Set(results.map(({ setting }) => setting.perSecond))];
  const each = limits.map((limit) => {
    const part = results.filter(({ setting }) => setting.perSecond === limit);
    const lines = part.map((result) => line(result, part));
    return [`### ${titleOf(part[0]?.setting)}`, '', ...HEADER, ...lines, '', speeds(part)].join('\n');
  });
  return each.join('\n\n');
}

export async function writeReport(text: string): Promise<void> {
  await writeFile(PAGE, withReport(await readFile(PAGE, 'utf8'), text));
}

/** Inserts the text between the page's marks. */
export function withReport(page: string, text: string): string {
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined)
    throw new Error(`bench/peers/results.md has lost its marks ${BEGIN} … ${END}`);
  return `${before}${BEGIN}\n\n${text}\n${END}${after}`;
}

const count = (number: number): string => number.toLocaleString('en');
const titleOf = (setting: Setting | undefined): string =>
  `${count(setting?.rows ?? 0)} leads, ${setting?.perSecond ? `${setting.perSecond} requests a second` : 'no limit'}`;

/** The result of Tributary with the same service and kind of destination. */
const ours = ({ setting, tool }: Result, all: readonly Result[]): number | undefined =>
  all.find(
    (other) =>
      other.tool.name === 'Tributary' && other.tool.kind === tool.kind && other.setting.server === setting.server,
  )?.figures?.rowsPerSecond;

function line(result: Result, all: readonly Result[]): string {
  const { tool, setting, figures } = result;
  const head = `| ${setting.server} | ${tool.name} | ${tool.into} |`;
  if (!figures) return `${head} its sync failed | | | | | | |`;
  const { lost, doubled, requests, refused, rowsPerSecond, cpuSeconds, peakMb } = figures;
  const peak = Number.isNaN(peakMb) ? 'unknown' : `${Math.round(peakMb)} MB`;
  const ratio = (rowsPerSecond / (ours(result, all) ?? Number.NaN)).toFixed(2);
  return `${head} ${[lost, doubled, requests, refused].map(count).join(' | ')} | ${ratio} | ${count(Math.round(cpuSeconds))} | ${peak} |`;
}

function speeds(part: readonly Result[]): string {
  const own = part.filter(({ tool, figures }) => tool.name === 'Tributary' && figures);
  const each = own.map(
    ({ tool, setting, figures }) =>
      `${tool.into}, ${setting.server}: ${count(Math.round(figures?.rowsPerSecond ?? 0))}`,
  );
  return `Tributary's rows/s: ${each.join(' · ')}.`;
}

/** The versions and load of the measurement. A changing load makes the speeds doubtful. */
export async function measuredWith(python: Python, loadBefore: readonly number[]): Promise<string> {
  const main = await pinned('requirements.txt');
  const parquet = await pinned('requirements-parquet.txt');
  const versions = [
    `dlt ${main.get('dlt')}`,
    `singer-sdk ${main.get('singer-sdk')}`,
    `meltanolabs-target-postgres ${main.get('meltanolabs-target-postgres')}`,
    `target-parquet ${parquet.get('target-parquet')?.slice(0, 7)}`,
    await pythonVersion(python.main),
    `Node ${process.versions.node}`,
  ];
  const absent =
    python.parquet === undefined ? ' Singer into Parquet is missing: its target could not be installed.' : '';
  const [before, after] = [loadBefore, loadavg()].map(([minute = 0]) => minute.toFixed(1));
  const machine = `${availableParallelism()} cores, load average ${before} before it began and ${after} at its end`;
  return `Measured on ${new Date().toISOString().slice(0, 10)} with ${versions.join(', ')}; ${machine}.${absent}`;
}
