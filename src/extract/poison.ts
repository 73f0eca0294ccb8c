import { RetryLater, StopStream } from '../model/errors.ts';
import type { Instant } from '../model/instant.ts';
import type { Answer, Asker } from './ask.ts';

/** A page that could not be had although the service is there: a row that breaks it, or a response too large. */
export interface Isolated {
  /** The longest page from the start that works. */
  prefix: Answer;
  prefixRows: number;
  /** Set where one row is to blame: its position, and what the service said. */
  poison: { position: number; reason: string } | undefined;
}

/** Failures that a smaller page may get round. 401, 403 and the like would fail at any size. */
export function mayBeOnePage(error: unknown): error is RetryLater | StopStream {
  if (error instanceof RetryLater) return error.answer?.status !== 429;
  return error instanceof StopStream && [413, 422].includes(error.answer?.status ?? 0);
}

/**
 * Finds the row that makes an ascending page fail, by halving. If even a single row cannot be had from either end, it is
 * not a row: the service is down or refuses the stream, and the original error stands.
 */
export async function isolate(asker: Asker, from: Instant, limit: number, error: Error): Promise<Isolated> {
  const attempt = async (order: 'asc' | 'desc', page: number, rows: number): Promise<Answer | undefined> => {
    try {
      return await asker.ask({ order, from, page, limit: rows, once: true });
    } catch (failure) {
      // Recovery: that this page fails is the answer that was asked for.
      if (mayBeOnePage(failure)) return undefined;
      throw failure;
    }
  };

  let works = 0;
  let fails = limit;
  let prefix = await attempt('asc', 1, 1);
  if (prefix) works = 1;
  else if (await attempt('desc', 1, 1)) fails = 1;
  else throw error;

  while (fails - works > 1) {
    const middle = Math.floor((works + fails) / 2);
    const answer = await attempt('asc', 1, middle);
    if (answer) [works, prefix] = [middle, answer];
    else fails = middle;
  }
  const alone = await attempt('asc', works + 1, 1);
  return {
    prefix: prefix ?? { rows: [], rejected: [], count: 0, oldest: undefined, newest: undefined },
    prefixRows: works,
    poison: alone ? undefined : { position: works, reason: error.message },
  };
}
