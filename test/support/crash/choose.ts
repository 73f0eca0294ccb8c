import { createRandom } from '../../../src/sandbox/random.ts';

/** Which of the steps that were discovered a process is killed at. */

/** All of them; but of a label that comes again and again only the first, the second, the middle and the last. */
export function everyStep(steps: readonly string[]): string[] {
  return [...byLabel(steps).values()].flatMap((same) => {
    const chosen = new Set([0, 1, same.length >> 1, same.length - 1]);
    return same.filter((_, i) => chosen.has(i));
  });
}

/** One of each label that was not met before, at a place that the seed decides. */
export function createSample(seed: number): (steps: readonly string[]) => string[] {
  const random = createRandom(seed);
  const met = new Set<string>();
  return (steps) =>
    [...byLabel(steps)].flatMap(([label, same]) => {
      if (met.has(label)) return [];
      met.add(label);
      return [random.pick(same)];
    });
}

function byLabel(steps: readonly string[]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const step of steps) {
    const label = step.replace(/ #\d+$/, '');
    groups.set(label, [...(groups.get(label) ?? []), step]);
  }
  return groups;
}
