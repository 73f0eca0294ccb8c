import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { createRandom } from '../../src/sandbox/random.ts';
import { type LakePlace, lakePlace } from '../support/lake-place.ts';
import { filesIn, globOf, queryDuckdb } from '../support/lake-readers.ts';
import { createWriter, NOON, rowOf } from '../support/sink-harness.ts';

/** Kill -9 in a loop of writes, fifty times: what a naive reader finds before, during and after is right. */

const CHILD = fileURLToPath(new URL('../support/lake-child.mjs', import.meta.url));
const KILLS = 50;
const HOUR = 3_600_000;
/** Fifty processes have to start. */
const LONG = { timeout: 240_000 };

let place: LakePlace;
beforeAll(async () => {
  place = await lakePlace({ compression: 'snappy' });
});
afterAll(() => place.close());

/** What the child is about to write, and what it was told to be written. */
const progress = { begun: -1, done: -1 };

async function runAndKill(first: number, delayMs: number): Promise<void> {
  const child = spawn(process.execPath, [CHILD, place.stateUrl, place.folder, String(first)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let hasBegun: () => void;
  const begun = new Promise<void>((resolve) => {
    hasBegun = resolve;
  });
  createInterface(child.stdout).on('line', (line) => {
    const [word, n] = line.split(' ');
    if (word === 'commits') progress.begun = Number(n);
    else progress.done = Number(n);
    hasBegun();
  });
  await Promise.race([begun, exited]);
  await sleep(delayMs);
  child.kill('SIGKILL');
  const [, signal] = await exited;
  expect(signal).toBe('SIGKILL');
}

async function idsByDuckdb(): Promise<string[]> {
  const rows = await queryDuckdb(`select event_id from ${globOf(place.folder, 'clicks')}`);
  return rows.map((row) => String(row.event_id));
}

/** Another library, another way of reading: each file taken whole, at the moment its name was seen. */
async function idsByHyparquet(): Promise<string[]> {
  const ids: string[] = [];
  for (const name of (await filesIn(place.folder)).filter((file) => file.endsWith('.parquet'))) {
    const bytes = await readFile(join(place.folder, name));
    const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
    const rows = await parquetReadObjects({ file: buffer, columns: ['event_id'] });
    ids.push(...rows.map((row) => String(row.event_id)));
  }
  return ids;
}

const written = (n: number): string[] => Array.from({ length: 30 }, (_, i) => `n${n}-${i}`);

/** Every event that was told to be written before the reading began is there, and each is there once. */
function check(ids: readonly string[], done: number): void {
  const there = new Set(ids);
  expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
  for (let n = 0; n <= done; n++) expect(written(n).filter((id) => !there.has(id))).toEqual([]);
}

it(`is never torn, double or short for a glob reader while its writer is killed ${KILLS} times`, LONG, async () => {
  const random = createRandom(7);
  let isOver = false;
  let readings = 0;
  const read = async (): Promise<void> => {
    while (!isOver) {
      const { done } = progress;
      await sleep(20);
      if (done >= 0) check(await (readings++ % 2 === 0 ? idsByDuckdb() : idsByHyparquet()), done);
    }
  };
  const reading = read();
  let midCommit = 0;
  let longestMs = 300;
  for (let kill = 0; kill < KILLS; kill++) {
    const { done } = progress;
    await runAndKill(progress.done + 1, random.int(0, Math.round(longestMs)));
    midCommit += progress.begun > progress.done ? 1 : 0;
    // Where the machine is too slow for a single commit in that time, it gets a little more.
    longestMs = progress.done > done ? 300 : Math.min(3000, longestMs * 1.15);
  }
  isOver = true;
  await reading;
  expect(readings).toBeGreaterThan(KILLS / 2);
  expect(midCommit).toBeGreaterThan(KILLS / 4);
  expect(progress.done).toBeGreaterThan(0);

  // At once, by a writer that knows nothing but the files and the state.
  const last = progress.begun;
  const writer = await createWriter(place, STREAMS.clicks, 'main');
  const wanders = [0, 1, 2].map((i) => rowOf(STREAMS.clicks, `wanders${i}`, NOON + (last + 1) * HOUR));
  expect(await writer.commit([...wanders, rowOf(STREAMS.clicks, 'new', NOON)])).toMatchObject({ new: 1, changed: 3 });
  for (const ids of [await idsByDuckdb(), await idsByHyparquet()]) {
    check(ids, progress.done);
    expect(ids.filter((id) => /^(?:wanders|changes|new)/.test(id)).sort()).toEqual([
      'changes',
      'new',
      'wanders0',
      'wanders1',
      'wanders2',
    ]);
  }
  expect((await filesIn(place.folder)).filter((file) => !/\.parquet$/.test(file))).toEqual([]);
});
