import { recordCase } from '../proof.ts';
import { judgeKilled } from './checks.ts';
import { type Ended, killAll } from './child.ts';
import type { Command } from './commands.ts';
import type { Grounds, SiteName } from './sites.ts';
import { openWorld, type World } from './world.ts';

/** A command on a set of sinks, killed at step after step. */
export interface Scene {
  command: Command;
  sites: readonly SiteName[];
}

export const nameOf = ({ command, sites }: Scene): string => `${command.name} into ${sites.join(' and ')}`;

export interface Outcome {
  cases: number;
  /** Those that stood at their step when they were killed. */
  killed: number;
  faults: string[];
}

/** What a process does when nobody kills it: every step, in order. What it leaves is held to the same as after a kill. */
export async function discover(grounds: Grounds, scene: Scene): Promise<string[]> {
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

/** In two lanes: while one waits for its process, the other looks at what its own has left. */
export async function killAtEach(
  grounds: readonly Grounds[],
  scene: Scene,
  steps: readonly string[],
): Promise<Outcome> {
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

/** One process for all of these, each on grounds of its own. */
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
    // Recovery: told with the others; one case must not hide the rest.
    faults.push(error instanceof Error ? error.message : String(error));
  }
  recordCase({ suite: 'crash', name: `${nameOf(scene)}: ${step}`, survived: faults.length === 0, lost, doubled });
  return faults.map((fault) => `killed at ${step}: ${fault}`);
}
