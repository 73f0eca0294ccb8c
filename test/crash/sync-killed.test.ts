import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Config } from '../../src/config-schema.ts';
import { createRandom } from '../../src/sandbox/random.ts';
import {
  configFor,
  type Engine,
  expectComplete,
  openEngine,
  sourceOf,
  syncAllDone,
  withSmallPages,
} from '../support/engine.ts';
import { smallSandbox } from '../support/sandbox.ts';

/** Kill -9 at any moment, run again: nothing lost, nothing double. */

const SCRIPT = fileURLToPath(new URL('../support/sync-child.ts', import.meta.url));
const KILLS = 3;

let state: Engine;
let warehouse: Engine;
beforeAll(async () => {
  [state, warehouse] = await Promise.all([openEngine(), openEngine()]);
});
afterAll(async () => {
  await state.close();
  await warehouse.close();
});

/** Syncs in another process and kills it so long after it began. Returns whether it was still at work. */
async function killedAfter(config: Config, ms: number): Promise<boolean> {
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), SCRIPT, JSON.stringify(config)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  await sleep(ms);
  child.kill('SIGKILL');
  const [, signal] = await exited;
  return signal === 'SIGKILL';
}

it.each([
  ['the database of the state', 'here', 11],
  ['another database', 'elsewhere', 12],
])('loses nothing and doubles nothing when it is killed again and again: rows in %s', async (_name, where, seed) => {
  const random = createRandom(seed);
  const sandbox = await smallSandbox({ rows: { clicks: 1000, leads: 200, sales: 100 }, days: 12, seed });
  // Every answer takes a little, so that kills fall before, between and in the middle of commits.
  sandbox.service.faults.add({ delayMs: 10, times: 100_000 });
  const [home, sinkUrl] = where === 'here' ? [state, undefined] : [warehouse, warehouse.url];
  const config = configFor(state, sandbox, { name: where, ...(sinkUrl && { sinkUrl }) });
  let atWork = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    await withSmallPages(state.db, config, 20);
    if (await killedAfter(config, random.int(30, 400))) atWork += 1;
  }
  expect(atWork).toBeGreaterThanOrEqual(KILLS / 2);

  // At once: the lease of a process that was killed on this machine is nobody's.
  sandbox.service.faults.clear();
  await syncAllDone(config);
  await expectComplete(home.db, config, sandbox);
  const runs = await state.db.query<{ state: string; finished_at: Date | null }>({
    text: 'select state, finished_at from tributary.runs where source = $1',
    values: [sourceOf(config)],
  });
  // Nothing is called running that is not, and some kills did fall into a run.
  expect(runs.filter((run) => run.state === 'running' || run.finished_at === null)).toEqual([]);
  expect(runs.filter((run) => run.state === 'interrupted')).not.toEqual([]);
});
