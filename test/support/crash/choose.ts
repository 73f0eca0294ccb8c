import { createRandom } from '../../../src/sandbox/data/random.ts';

/** Which of the steps that were discovered a process is killed at. */

/** All of them; but of a label that comes again and again only the first, the second, the middle and the last. */
export function everyStep(steps: readonly string[]): string[] {
  return [...groups(steps).values()].flatMap((same) => {
    const chosen = new Set([0, 1, same.length >> 1, same.length - 1]);
    return same.filter((_, i) => chosen.has(i));
  });
}

/** At least so many of a scene, also where every kind of step was met before. */
const FEWEST = 4;

/** To be sent and to be answered is one kind; so are all questions that change nothing, and all texts that lie beside the data. */
const kindOf = (label: string): string =>
  label
    .replace(/: [\w ]+$/, '')
    .replace(/^select .*/, 'select')
    .replace(/README\.md|_catalog\.json|_coverage\.json/, 'text');

/** One of each kind that was not met before, at a place that the seed decides. */
export function createSample(seed: number): (steps: readonly string[]) => string[] {
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
export const labelOf = (step: string): string => step.replace(/ #\d+$/, '');
