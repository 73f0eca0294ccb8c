/** Closers of opened resources: each is pushed right after opening. */
export type Closers = Array<() => Promise<void> | void>;

/** Runs `work`, then closes what it opened, in reverse order, also if it failed halfway. */
export async function withClosers<T>(work: (closers: Closers) => Promise<T>): Promise<T> {
  const closers: Closers = [];
  let result: T;
  try {
    result = await work(closers);
  } catch (error) {
    // Recovery: the caller gets the error of the work; errors while closing are only its consequence.
    await closeAll(closers).catch(() => {});
    throw error;
  }
  await closeAll(closers);
  return result;
}

/** Every closer runs, even if others fail; the first error is thrown when all are done. */
async function closeAll(closers: Closers): Promise<void> {
  const failures: unknown[] = [];
  for (const closer of closers.splice(0).reverse()) {
    try {
      await closer();
    } catch (error) {
      // Recovery: thrown after the rest is closed, because an open connection would keep the process alive.
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
