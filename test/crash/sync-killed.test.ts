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
const KILLS = 2;

let state: Engine;
let warehouse: Engine;
beforeAll(async () => {
  [state, warehouse] = await Promise.all([openEngine(), openEngine()]);
});
afterAll(async () => {
  await state.close();
  await warehouse.close();
});

/** Syncs in another process and kills it when the moment has come. Returns whether it was still at work. */
async function killedAt(config: Config, moment: () => Promise<unknown>): Promise<boolean> {
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), SCRIPT, JSON.stringify(config)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  await moment();
  child.kill('SIGKILL');
  const [, signal] = await exited;
  return signal === 'SIGKILL';
}

async function ledgerMoves(source: string): Promise<void> {
  const windows = { text: 'select 1 from tributary.windows where source = $1', values: [source] };
  while ((await state.db.query(windows)).length === 0) await sleep(1);
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
    if (await killedAt(config, () => sleep(random.int(30, 400)))) atWork += 1;
  }
  expect(atWork).toBeGreaterThanOrEqual(KILLS / 2);

  // The worst moment: the ledger has just moved. What it speaks of must be there.
  await withSmallPages(state.db, config, 20);
  await killedAt(config, () => ledgerMoves(sourceOf(config)));

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
