import { describe, expect, test } from 'vitest';
import { recordCase } from '../support/proof.ts';
import { BEHAVIOURS, readSmallWorld, type SmallWorld, smallWorlds } from '../support/small-worlds.ts';
import { isDeep } from '../tiers.ts';

/**
 * The proof in the small: pages of two or three rows, up to six rows on three instants, every behaviour, and one row that is deleted, hidden,
 * added, gone for a while or unreadable. `npm run prove` and the two tiers try a fixed sample each; `EVERY=1` tries all of them, which takes hours.
 */
const EVERY = Number(process.env.EVERY ?? (process.env.TRIBUTARY_PROVE ? 31 : isDeep ? 151 : 1597));

describe('what is certified is complete, in every small world', () => {
  test.each(Object.keys(BEHAVIOURS))('%s', { timeout: 3_600_000 }, async (behaviour) => {
    const wrong: SmallWorld[] = [];
    let [tried, certified, index] = [0, 0, 0];
    for (const world of smallWorlds(behaviour)) {
      if (index++ % EVERY !== 0) continue;
      tried += 1;
      const { missing, certifiedMs, requests } = await readSmallWorld(world);
      if (missing.length > 0) wrong.push(world);
      if (certifiedMs > 0) certified += 1;
      expect(requests).toBeLessThan(3000);
    }
    const lost = wrong.length;
    recordCase({ suite: 'small worlds', name: behaviour, survived: true, lost: 0, times: tried - lost });
    if (lost > 0) recordCase({ suite: 'small worlds', name: behaviour, survived: false, lost, times: lost });
    process.stdout.write(`${behaviour}: ${tried} worlds, something certified in ${certified}\n`);
    expect(wrong.map((world) => JSON.stringify(world)).slice(0, 3)).toEqual([]);
  });
});
