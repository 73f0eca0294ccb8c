import type { Transaction } from '../cursor/database/index.ts';
import { RetryLater } from '../model/errors.ts';

/**
 * Runs a transaction and makes sure of its outcome. When the connection breaks while COMMIT is under way, nobody knows whether
 * it went through: that is looked up, not repeated blindly.
 */
export async function resolveInDoubt<T>(
  work: (tx: Transaction) => Promise<T>,
  run: (work: (tx: Transaction) => Promise<T>) => Promise<T>,
  isThere: () => Promise<boolean>,
): Promise<T> {
  let done: { result: T } | undefined;
  try {
    return await run(async (tx) => {
      const result = await work(tx);
      done = { result };
      return result;
    });
  } catch (error) {
    // Recovery: only a commit that was sent can be in doubt; anything earlier was rolled back.
    if (done && error instanceof RetryLater && (await isThere())) return done.result;
    throw error;
  }
}
