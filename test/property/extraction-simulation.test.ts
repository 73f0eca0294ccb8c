import { describe, expect, test } from 'vitest';
import type { TraitName } from '../support/odd-service/traits.ts';
import { recordCase } from '../support/proof.ts';
import { isDeep } from '../tiers.ts';
import { DRAWN, NOT_PROVEN_YET, STAYS_OPEN } from './simulation/drawn-traits.ts';
import { InvariantBroken } from './simulation/invariants.ts';
import { type SimulationOptions, simulate } from './simulation/simulation.ts';

/**
 * The proof by simulation. `SEEDS=20000` runs more seeds; `SEED=1234` runs one and logs every request and commit.
 * `TRAITS=widenStart,pagedTies` gives every world these traits, even those known to be unsound;
 * `STEADY=1` gives it no others.
 * The invariants are in test/property/simulation/invariants.ts, the worlds in test/property/simulation/scenario.ts.
 */
const isProving = process.env.TRIBUTARY_PROVE !== undefined;
const seeds = Number(process.env.SEEDS ?? (isProving ? 3000 : isDeep ? 300 : 50));
const firstSeed = Number(process.env.FIRST_SEED ?? 1);
const one = process.env.SEED === undefined ? undefined : Number(process.env.SEED);
const only = process.env.TRAITS?.split(',') as TraitName[] | undefined;
const steady = process.env.STEADY !== undefined;
const STEADY_SEEDS = isProving ? 200 : isDeep ? 10 : 3;
const CHUNKS = 20;
/** Some traits leave gaps open for ever. */
const MOST_OPEN = 0.09;

const all = (): void => {
  const open: string[] = [];
  for (let chunk = 0; chunk < CHUNKS; chunk++) {
    const first = firstSeed + Math.floor((seeds * chunk) / CHUNKS);
    const last = firstSeed + Math.floor((seeds * (chunk + 1)) / CHUNKS) - 1;
    test(`seeds ${first} to ${last}`, { timeout: 3_600_000 }, async () => {
      const broken: string[] = [];
      for (let seed = first; seed <= last; seed++) {
        const failure = await failureOf(seed, { only });
        if (failure)
          broken.push(`${failure}\n  replay: SEED=${seed} npx vitest run test/property/extraction-simulation.test.ts`);
      }
      open.push(...openIn(broken));
    });
  }
  test('nearly all simulations end complete', () => {
    expect(open.length, open.join('\n')).toBeLessThanOrEqual(Math.max(1, Math.floor(seeds * MOST_OPEN)));
  });
};

const replay = (seed: number): void =>
  test(`seed ${seed}`, async () => {
    const lines: string[] = [];
    const failure = await failureOf(seed, { only, steady, tell: (line) => lines.push(line) });
    process.stdout.write(`${lines.join('\n')}\n`);
    expect(failure).toBeUndefined();
  });

describe('nothing is lost, nothing is doubled, nothing is certified unproven', () => {
  if (one === undefined) all();
  else replay(one);
});

describe('three runs prove what is provable of a service with one odd behaviour', () => {
  const sound = DRAWN.filter((name) => !STAYS_OPEN.includes(name));
  test.skipIf(one !== undefined).each(sound.filter((name) => !NOT_PROVEN_YET.includes(name)))(
    '%s',
    { timeout: 600_000 },
    async (name) => {
      const broken: string[] = [];
      for (let seed = 1; seed <= STEADY_SEEDS; seed++) {
        const failure = await failureOf(seed, { only: [name], steady: true });
        if (failure)
          broken.push(
            `${failure}\n  replay: STEADY=1 TRAITS=${name} SEED=${seed} npx vitest run test/property/extraction-simulation.test.ts`,
          );
      }
      expect(openIn(broken).length, broken.join('\n')).toBeLessThanOrEqual(Math.max(1, STEADY_SEEDS * 0.2));
    },
  );
});

/**
 * Nothing may ever be lost, doubled or certified unproven. Certifying everything in the end (I6) is a goal, not a guarantee:
 * a few worlds in a hundred keep a reported gap; what is missing in it is not certified.
 */
function openIn(broken: readonly string[]): string[] {
  const open = broken.filter((failure) => failure.startsWith('I6'));
  expect(broken.filter((failure) => !open.includes(failure)).join('\n')).toBe('');
  return open;
}

async function failureOf(seed: number, options: SimulationOptions): Promise<string | undefined> {
  const { only = [], steady } = options;
  const proof = { suite: 'simulation', name: [steady ? 'steady' : '', ...only, `seed ${seed}`].join(' ').trim() };
  try {
    await simulate(seed, options);
    // The last invariant has checked that nothing is missing.
    recordCase({ ...proof, survived: true, lost: 0 });
    return undefined;
  } catch (error) {
    const isBroken = error instanceof InvariantBroken;
    const open = isBroken && error.message.startsWith('I6');
    recordCase({ ...proof, survived: open, open, lost: isBroken && !open ? error.lost : 0 });
    return isBroken ? error.message : String(error instanceof Error ? error.stack : error);
  }
}
