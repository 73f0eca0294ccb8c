/** Works on a few items at a time. The first failure ends the others by their signal, and is the one that is thrown. */
export async function sideBySideDo<T>(
  lanes: number,
  items: readonly T[],
  signal: AbortSignal,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const queue = [...items];
  const stop = new AbortController();
  const still = AbortSignal.any([signal, stop.signal]);
  let failure: { reason: unknown } | undefined;
  const one = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined && !failure; item = queue.shift()) {
      try {
        await work(item, still);
      } catch (reason) {
        // Recovery: the caller's; what the others throw because they were stopped is of no interest.
        failure ??= { reason };
        stop.abort();
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, one));
  if (failure) throw failure.reason;
}
