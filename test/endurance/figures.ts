/** How a figure that was sampled over time moved. */
export interface Course {
  /** The median of the first and of the last third, after the warm-up. */
  first: number;
  last: number;
  most: number;
  /** How much larger the last third is; one that begins at nothing is compared with 1. */
  ratio: number;
}

/** While caches fill and code is compiled, everything grows. */
const WARM_UP = 0.2;

export function courseOf(figures: readonly number[]): Course {
  const warm = figures.slice(Math.floor(figures.length * WARM_UP));
  const third = Math.floor(warm.length / 3);
  if (third === 0) throw new RangeError(`too few samples to tell a course from: ${figures.length}`);
  const [first, last] = [median(warm.slice(0, third)), median(warm.slice(-third))];
  return { first, last, most: Math.max(...figures), ratio: last / Math.max(first, 1) };
}

function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
