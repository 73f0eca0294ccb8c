/** Closers of opened resources: each is pushed right after opening. */
export type Closers = Array<() => Promise<void> | void>;

/** Closes what the work opened, in the opposite order, also when something further on fails to open. */
export async function withClosers<T>(work: (closers: Closers) => Promise<T>): Promise<T> {
  const closers: Closers = [];
  let result: T;
  try {
    result = await work(closers);
  } catch (error) {
    // Recovery: the caller needs the reason why the work failed; errors of closing are a consequence.
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
      // Recovery: kept until the rest is closed, because an open connection would keep the process alive.
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
