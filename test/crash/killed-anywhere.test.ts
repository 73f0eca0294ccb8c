import { afterAll, beforeAll, expect, it } from 'vitest';
import { runWorkerApp } from '../../src/app/worker.ts';
import type { Timings } from '../../src/jobs/schedule.ts';
import { createRandom } from '../../src/sandbox/data/random.ts';
import { recordCase } from '../support/proof.ts';
import { hasRedis } from '../support/redis.ts';
import { silentLog } from '../support/silent-log.ts';
import type { Backend } from '../support/workers.ts';
import { judgeKilled } from './support/checks.ts';
import { type Ended, killAll } from './support/child.ts';
import {
  backfillHistory,
  type Command,
  firstSync,
  forgetCustomer,
  forgetSource,
  laterSync,
  maintainTables,
  parallelism,
  refill,
  rewriteLake,
  upgradedSync,
  veryFirstSync,
} from './support/commands.ts';
import { type Grounds, openGrounds, type SiteName } from './support/sites.ts';
import { openWorld, type World } from './support/world.ts';

/**
 * Sends SIGKILL at every I/O step of a command, whichever code makes it; then runs the command again. After the kill, certified data is
 * in the sinks. After the second run the sinks hold the service's events, each once, and no leftovers.
 *
 * This runs one step of each kind. TRIBUTARY_PROVE=1 runs one step in ten (of a repeated one, the first, second, middle and
 * last count) on more sinks; STEPS=1 runs every step, in three to six hours on two cores.
 */
const isProving = process.env.TRIBUTARY_PROVE === '1';
const ONE_IN = Number(process.env.STEPS ?? 10);

/** Selects the steps to kill at. Scenes share steps: each continues the count of the scene before. */
function createShare(): (steps: readonly string[]) => string[] {
  let count = 0;
  return (steps) => {
    const all = [...groups(steps).values()].flatMap((same) => {
      const chosen = new Set([0, 1, same.length >> 1, same.length - 1]);
      return same.filter((_, i) => chosen.has(i));
    });
    return all.filter(() => count++ % ONE_IN === 0);
  };
}

/** The minimum for a scene, even if earlier scenes covered every kind of its steps. */
const FEWEST = 4;

/** Groups sending with answering, all queries that change nothing, and all text files beside the data. */
const kindOf = (label: string): string =>
  label
    .replace(/: [\w ]+$/, '')
    .replace(/^select .*/, 'select')
    .replace(/README\.md|_catalog\.json|_coverage\.json/, 'text');

/** One step of each kind not covered before, chosen by the seed. */
function createSample(seed: number): (steps: readonly string[]) => string[] {
  const random = createRandom(seed);
  const met = new Set<string>();
  return (steps) => {
    const chosen = new Set<string>();
    for (const [kind, same] of groups(steps, kindOf)) {
      if (!met.has(kind)) chosen.add(random.pick(same));
      met.add(kind);
    }
    while (chosen.size < FEWEST) chosen.add(random.pick(steps));
    return [...chosen];
  };
}

function groups(steps: readonly string[], by = (label: string): string => label): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const step of steps) {
    const kind = by(labelOf(step));
    found.set(kind, [...(found.get(kind) ?? []), step]);
  }
  return found;
}

/** Without its number. */
const labelOf = (step: string): string => step.replace(/ #\d+$/, '');

/**
 * A kill keeps everything written; a power cut loses what was not flushed to disk. So this checks the order of an undisturbed
 * run: a file is flushed before it is renamed, and its directory before the state records it.
 */
function faultsOfOrder(steps: readonly string[]): string[] {
  const faults: string[] = [];
  const inMemory = new Set<string>();
  const unnamed = new Set<string>();
  for (const label of steps.map(labelOf)) {
    const [, verb, name = ''] = /^(write|sync|rename) (.+?)(?:\.\*\.tmp)?$/.exec(label) ?? [];
    const isTemp = label.endsWith('.*.tmp');
    const file = name.replace(/^\./, '');
    if (verb === 'write' && isTemp) inMemory.add(file);
    if (verb === 'sync' && isTemp) inMemory.delete(file);
    if (verb === 'rename' && inMemory.has(file)) faults.push(`${file} takes its place before it is on disk`);
    if (verb === 'rename') unnamed.add(file);
    // The folder of the file, then its parents.
    if (verb === 'sync' && !isTemp) unnamed.clear();
    if (label === 'commit: sent' && unnamed.size > 0) {
      faults.push(`the state hears of ${[...unnamed]} before the name is on disk`);
      unnamed.clear();
    }
  }
  return faults;
}

/** A command on a set of sinks, killed at one step after another. */
interface Scene {
  command: Command;
  sites: readonly SiteName[];
}

const nameOf = ({ command, sites }: Scene): string => `${command.name} into ${sites.join(' and ')}`;

interface Outcome {
  cases: number;
  /** Cases that were paused at their step when killed. */
  killed: number;
  faults: string[];
}

/** Runs the scene without a kill and returns every step, in order. Its result must pass the same checks as after a kill. */
async function discover(grounds: Grounds, scene: Scene): Promise<string[]> {
  const world = await openScene(grounds, scene);
  try {
    const [end] = (await killAll([{ task: scene.command.task(world) }])) as [Ended];
    const { faults } = await scene.command.judge(world);
    if (end.code !== 0 || faults.length > 0) {
      throw new Error(`undisturbed, ${nameOf(scene)} ended with ${end.code}: ${[end.said, ...faults].join('; ')}`);
    }
    return end.steps;
  } finally {
    await world.close();
  }
}

/** In two lanes: while one waits for its process, the other checks the results of its last. */
async function killAtEach(grounds: readonly Grounds[], scene: Scene, steps: readonly string[]): Promise<Outcome> {
  const outcome: Outcome = { cases: 0, killed: 0, faults: [] };
  const left = [...steps];
  const half = grounds.length >> 1;
  const workThrough = async (own: readonly Grounds[]): Promise<void> => {
    while (left.length > 0) {
      const { killed, faults } = await killTogether(own, scene, left.splice(0, own.length));
      outcome.killed += killed;
      outcome.faults.push(...faults);
    }
  };
  outcome.cases = steps.length;
  await Promise.all([workThrough(grounds.slice(0, half)), workThrough(grounds.slice(half))]);
  return outcome;
}

/** One process for all of these steps, each on its own grounds. */
async function killTogether(
  grounds: readonly Grounds[],
  scene: Scene,
  steps: readonly string[],
): Promise<Omit<Outcome, 'cases'>> {
  const worlds = await Promise.all(steps.map((_, i) => openScene(grounds[i] as Grounds, scene)));
  try {
    const ends = await killAll(worlds.map((world, i) => ({ task: scene.command.task(world), at: steps[i] })));
    for (const [i, world] of worlds.entries()) world.killed = ends[i]?.pid;
    const judged = await Promise.all(worlds.map((world, i) => judge(scene, world, steps[i] ?? '')));
    return { killed: ends.filter(({ isStill }) => isStill).length, faults: judged.flat() };
  } finally {
    await Promise.all(worlds.map((world) => world.close()));
  }
}

async function openScene(grounds: Grounds, { command, sites }: Scene): Promise<World> {
  const world = await openWorld(grounds, { sites, ...command.world });
  await command.prepare(world);
  return world;
}

async function judge(scene: Scene, world: World, step: string): Promise<string[]> {
  const { command } = scene;
  const faults = command.isUntrue ? [] : await judgeKilled(world);
  let [lost, doubled] = [0, 0];
  try {
    await command.again(world);
    const judgement = await command.judge(world);
    faults.push(...judgement.faults);
    ({ lost, doubled } = judgement);
  } catch (error) {
    // Recovery: reported with the others; one failed case must not hide the rest.
    faults.push(error instanceof Error ? error.message : String(error));
  }
  recordCase({ suite: 'crash', name: `${nameOf(scene)}: ${step}`, survived: faults.length === 0, lost, doubled });
  return faults.map((fault) => `killed at ${step}: ${fault}`);
}

/** Polls often, so that no test waits; a lock lives long enough to be renewed on a slow machine. */
const TIMINGS: Partial<Timings> = {
  tickMs: 100,
  watchMs: 300,
  recheckMs: 400,
  lockMs: 2000,
  busyMs: 100,
  maintainMs: 200,
};

/** Twelve workers at once take most of a minute on a busy machine. */
const LONGEST_MS = 120_000;

/** One turn of a worker: it takes a due job from the queue, runs it and finishes it. */
const workerTurn = (backend: Backend): Command => ({
  ...laterSync,
  name: `a worker's turn with its queue in ${backend}`,
  world: { settings: { every: '1s' }, isQueueInRedis: backend === 'redis' },
  task: ({ config }) => ({ worker: { config, timings: TIMINGS } }),
  again: takeTurn,
});

/** Starts another worker and waits until it has done a run. */
async function takeTurn(world: World): Promise<void> {
  world.syncedAt = Date.now();
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), LONGEST_MS);
  const states: string[] = [];
  const isDone = (): boolean => states.includes('done');
  await runWorkerApp({
    config: world.config,
    timings: TIMINGS,
    log: silentLog,
    signal: stop.signal,
    onRun({ state }) {
      states.push(state);
      if (isDone()) stop.abort();
    },
  });
  clearTimeout(timer);
  if (!isDone()) throw new Error(`no worker ever took the stream up again: ${states.join(', ') || 'no run at all'}`);
}

const SAMPLED: readonly Scene[] = [
  { command: firstSync, sites: ['folder'] },
  { command: laterSync, sites: ['elsewhere', 'folder'] },
  { command: firstSync, sites: ['s3'] },
  { command: firstSync, sites: ['tables'] },
  { command: laterSync, sites: ['tables'] },
  { command: upgradedSync, sites: ['folder'] },
  { command: refill, sites: ['here'] },
  { command: refill, sites: ['elsewhere', 'folder'] },
  { command: backfillHistory, sites: ['here'] },
  { command: forgetCustomer, sites: ['here', 'folder'] },
  { command: forgetSource, sites: ['elsewhere', 'folder'] },
  { command: forgetCustomer, sites: ['tables'] },
  { command: maintainTables, sites: ['tables'] },
  { command: workerTurn('redis'), sites: ['here'] },
  { command: workerTurn('postgres'), sites: ['here'] },
];
const FURTHER: readonly Scene[] = [
  { command: firstSync, sites: ['here'] },
  { command: firstSync, sites: ['elsewhere'] },
  { command: firstSync, sites: ['here', 'folder'] },
  { command: veryFirstSync, sites: ['here', 'folder'] },
  { command: laterSync, sites: ['here'] },
  { command: laterSync, sites: ['elsewhere'] },
  { command: laterSync, sites: ['folder'] },
  { command: laterSync, sites: ['s3'] },
  { command: laterSync, sites: ['here', 'folder'] },
  { command: laterSync, sites: ['here', 's3'] },
  { command: laterSync, sites: ['here', 'elsewhere'] },
  { command: laterSync, sites: ['elsewhere', 'further'] },
  { command: laterSync, sites: ['elsewhere', 's3'] },
  { command: laterSync, sites: ['folder', 's3'] },
  { command: parallelism, sites: ['here', 'folder'] },
  { command: parallelism, sites: ['tables'] },
  { command: veryFirstSync, sites: ['tables'] },
  { command: laterSync, sites: ['here', 'tables'] },
  { command: upgradedSync, sites: ['tables'] },
  { command: backfillHistory, sites: ['tables'] },
  { command: forgetSource, sites: ['tables'] },
  { command: workerTurn('postgres'), sites: ['tables'] },
  { command: backfillHistory, sites: ['elsewhere', 'folder'] },
  { command: backfillHistory, sites: ['s3'] },
  { command: forgetSource, sites: ['here', 's3'] },
];
/** Last, because it adds columns to the tables. */
const LAST: readonly Scene[] = [{ command: rewriteLake, sites: ['folder'] }];

/** How many cases one process runs at once. */
const AT_ONCE = 12;

let grounds: Grounds[];
let close: () => Promise<void>;
beforeAll(async () => {
  ({ grounds, close } = await openGrounds(AT_ONCE));
});
afterAll(() => close());

/** Labels of all steps of any scene. */
const seen = new Set<string>();
const choose = isProving ? createShare() : createSample(7);
const scenes = [...SAMPLED, ...(isProving ? FURTHER : []), ...LAST];

it.skipIf(!hasRedis).each(scenes.map((scene) => [nameOf(scene), scene] as const))(
  '%s',
  { timeout: 900_000 },
  async (_name, scene) => {
    const steps = await discover(grounds[0] as Grounds, scene);
    for (const step of steps) seen.add(labelOf(step));
    // With several sinks or streams their steps interleave, and the commit of one is independent of the files of another.
    if (scene.sites.length === 1 && !scene.command.world?.streams) expect(faultsOfOrder(steps)).toEqual([]);
    const chosen = choose(steps);
    const { cases, killed, faults } = await killAtEach(grounds, scene, chosen);
    expect(faults).toEqual([]);
    // Concurrent work varies between runs: a few cases end without reaching their step.
    expect(killed).toBeGreaterThanOrEqual(cases / 2);
  },
);

/** Code can bypass an instrumented function, so a step known to exist must have been seen. */
it.skipIf(!hasRedis)(
  'covers requests, pages, copies, merges, commits, renames, syncs to disk, ledger, leases and queues',
  () => {
    const known = [
      ...['GET events: sent', 'GET events: all read', 'PUT source.parquet: sent'],
      ...['copy attribution.leads: rows begin', 'update attribution.leads: sent', 'commit: answered'],
      ...['rename source.parquet', 'sync .source.parquet.*.tmp', 'sync date=*', 'link .source.parquet.lock'],
      ...['insert tributary.windows: sent', 'update tributary.leases: answered', 'insert attribution._receipts: sent'],
      // A worker asked to stop by then does not fetch another job.
      ...['moveToFinished: sent', 'move_to_completed_fetch: sent or move_to_completed: sent'],
    ];
    expect(known.filter((labels) => !labels.split(' or ').some((label) => seen.has(label)))).toEqual([]);
  },
);
