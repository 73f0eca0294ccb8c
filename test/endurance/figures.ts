/** The course of a figure sampled over time. */
export interface Course {
  /** The medians of the first and last third, after the warm-up. */
  first: number;
  last: number;
  most: number;
  /** The ratio of the last third to the first; if the first is 0, to 1. */
  ratio: number;
}

/** Everything grows while caches fill and code is compiled. */
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
