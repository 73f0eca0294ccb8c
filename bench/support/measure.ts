/** Times of one process, taken so that a busy moment of the machine meets everybody alike. */

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  const [low, high] = [sorted[sorted.length % 2 === 0 ? half - 1 : half], sorted[half]];
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2;
}

/** Seconds of the clock. */
export async function timed(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

/** Seconds of the processor, over all threads of this process: what waits costs nothing. */
export async function burnt(work: () => unknown): Promise<number> {
  const start = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

/** Every round does each of them once (A B C, A B C, …). By name, what each round measured. */
export async function inTurns<Name extends string>(
  rounds: number,
  works: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(works) as Name[];
  const found = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = 0; round < rounds; round++) for (const name of names) found[name].push(await works[name]());
  return found;
}

/** The median of the rounds' ratios: each round is compared with itself. */
export const ratioOf = (of: readonly number[], to: readonly number[]): number =>
  median(of.map((value, round) => value / (to[round] ?? Number.NaN)));
