import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { discover, killAtEach, nameOf, type Scene } from '../support/crash/cases.ts';
import { createSample, everyStep } from '../support/crash/choose.ts';
import * as commands from '../support/crash/commands.ts';
import { type Grounds, openGrounds } from '../support/crash/sites.ts';
import { workerTurn } from '../support/crash/worker-command.ts';

let grounds: Grounds[];
let close: () => Promise<void>;
beforeAll(async () => {
  ({ grounds, close } = await openGrounds(10));
});
afterAll(() => close());
const sample = createSample(7);

const all: Record<string, Scene> = {
  fs: { command: commands.forgetSource, sites: ['elsewhere', 'folder'] },
  fc: { command: commands.forgetCustomer, sites: ['elsewhere', 'folder'] },
  bf: { command: commands.backfillHistory, sites: ['folder'] },
  be: { command: commands.backfillHistory, sites: ['elsewhere'] },
  f3: { command: commands.firstSync, sites: ['s3'] },
  ff: { command: commands.firstSync, sites: ['folder'] },
  l3: { command: commands.laterSync, sites: ['here', 's3'] },
  le: { command: commands.laterSync, sites: ['elsewhere', 'further'] },
  rw: { command: commands.rewriteLake, sites: ['folder'] },
  wr: { command: workerTurn('redis'), sites: ['here'] },
  wp: { command: workerTurn('postgres'), sites: ['elsewhere'] },
};
const scenes = (process.env.S ?? '').split(',').map((name) => all[name] as Scene);
it.each(scenes.map((scene) => [nameOf(scene), scene] as const))('%s', { timeout: 900_000 }, async (_name, scene) => {
  const t0 = performance.now();
  const steps = await discover(grounds[0] as Grounds, scene);
  writeFileSync(`/tmp/crash/steps-${nameOf(scene)}.txt`, steps.join('\n'));
  const chosen = process.env.N ? everyStep(steps).filter((_, i) => i % Number(process.env.N) === 0) : sample(steps);
  const t1 = performance.now();
  const c1 = process.cpuUsage();
  const outcome = await killAtEach(grounds, scene, chosen);
  const c2 = process.cpuUsage(c1);
  console.log(nameOf(scene), steps.length, everyStep(steps).length, chosen.length, outcome, Math.round(t1 - t0), (performance.now() - t1) / chosen.length, 'own cpu ms', (c2.user + c2.system) / 1000 / chosen.length);
  expect(outcome.faults).toEqual([]);
});
