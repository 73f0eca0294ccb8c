import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { DuckDBInstance } from '@duckdb/node-api';
import type { Kind, Value } from '../../src/model/columns.ts';
import { makeTable, type Table } from './rows.ts';
import { WRITERS, type Write } from './writers.ts';

/**
 * The lake's writer and others: the same rows, alternating in one run. `npx tsx bench/parquet/bench.ts [rows] [columns]`.
 * Rows a second depend on the machine; ratios hardly do.
 */
const [ROWS = 40_000, COLUMNS = 125] = process.argv.slice(2, 4).map(Number);
const ROUNDS = 3;
const BASE = 'DuckDB appender → COPY, zstd';

const dir = mkdtempSync(join(tmpdir(), 'tributary-bench-'));
// The first rows are a warm-up and do not count.
const warmUp = (table: Table): Table => ({ ...table, rows: table.rows.slice(0, 1000) });
const pathOf = (name: string): string => join(dir, `${name.replaceAll(/\W+/g, '-')}.parquet`);
try {
  const [only] = process.argv.slice(4);
  if (only === undefined) await compare();
  else process.stdout.write(String(await peakOf(WRITERS[only] as Write)));
} finally {
  rmSync(dir, { recursive: true, force: true });
}

async function compare(): Promise<void> {
  const table = makeTable(ROWS, COLUMNS);
  const times = new Map<string, number[]>();
  for (const [name, write] of Object.entries(WRITERS)) await write(warmUp(table), pathOf(name));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, write] of Object.entries(WRITERS)) {
      const start = performance.now();
      await write(table, pathOf(name));
      times.set(name, [...(times.get(name) ?? []), performance.now() - start]);
    }
  }
  const best = (name: string): number => Math.min(...(times.get(name) ?? []));
  const sizeOf = (name: string): number => statSync(pathOf(name)).size;
  line('writer', 'rows/s', 'ratio', 'size', 'peak MB', 'finds 😀', '2^53+1 becomes');
  for (const [name, write] of Object.entries(WRITERS)) {
    line(
      name,
      Math.round((table.rows.length / best(name)) * 1000).toLocaleString('en'),
      (best(BASE) / best(name)).toFixed(2),
      (sizeOf(name) / sizeOf(BASE)).toFixed(2),
      peakInChild(name),
      await emojiFound(write),
      await largeInteger(write),
    );
  }
  process.stdout.write(
    `\n${table.rows.length.toLocaleString('en')} clicks, ${table.columns.length} columns, best of ${ROUNDS}; ${BASE} = 1\n`,
  );
}

function line(name: string, ...cells: string[]): void {
  const last = cells.pop();
  process.stdout.write(`${name.padEnd(34)}${cells.map((cell) => cell.padStart(10)).join('')}   ${last}\n`);
}

/** A process for each: memory left by one would count against the next. */
function peakInChild(name: string): string {
  const [node, ...flags] = [process.execPath, ...process.execArgv];
  const script = process.argv[1] as string;
  return execFileSync(node, [...flags, script, String(ROWS), String(COLUMNS), name], { encoding: 'utf8' });
}

/** Memory growth beyond the rows themselves, in MB; only on Linux. */
async function peakOf(write: Write): Promise<string> {
  const table = makeTable(ROWS, COLUMNS);
  await write(warmUp(table), pathOf('warm'));
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  try {
    // 5 resets the peak.
    writeFileSync('/proc/self/clear_refs', '5');
  } catch {
    // Recovery: without the figure.
    return '?';
  }
  const before = process.memoryUsage.rss();
  await write(table, pathOf('peak'));
  const [, peak = ''] = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return ((Number(peak) * 1024 - before) / 1e6).toFixed(0);
}

/** Queries DuckDB for a text that bounds in UTF-16 order would hide. */
async function emojiFound(write: Write): Promise<string> {
  const texts = ['！', '😀', 'z'].map((text) => [text]);
  return (await ask(write, 'text', texts, `select count(*) as answer from $file where c = '😀'`)) === '1'
    ? 'yes'
    : 'no';
}

/** What DuckDB reads of an integer beyond a double's range. */
function largeInteger(write: Write): Promise<string> {
  return ask(write, 'integer', [[2n ** 53n + 1n]], 'select c as answer from $file');
}

async function ask(write: Write, kind: Kind, rows: Value[][], sql: string): Promise<string> {
  const path = pathOf('ask');
  await write({ columns: [{ name: 'c', kind, nullable: false }], rows }, path);
  const connection = await (await DuckDBInstance.create()).connect();
  const result = await connection.runAndReadAll(sql.replace('$file', `'${path}'`));
  return String(result.getRowObjects()[0]?.answer);
}
