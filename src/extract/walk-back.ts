import type { Instant } from '../model/instant.ts';
import type { Answer, Asker } from './ask.ts';
import { sameRows, tiesAt } from './frontier.ts';
import { assertThere, mayBeOnePage } from './poison.ts';
import { delivered } from './progress.ts';
import type { FarEnd, Slice } from './reader.ts';
import { firstStep, nextStep, type Step } from './steps.ts';

export interface WalkBack {
  /** Asks for nothing older than this, and for nothing newer than `until`. */
  from: Instant;
  until?: Instant;
  /** Everything older is known: the walk ends when a page reaches behind it. Undefined: one page. */
  floor: Instant | undefined;
  mostPages: number;
}

/** Where nothing is known of the far end. */
export const UNSEEN: FarEnd = { above: undefined, emptyFrom: undefined };

/**
 * From the newest row back, page by overlapping page, delivering as it goes. A descending page proves every row strictly
 * newer than its oldest; the next one carries that on only if it begins before the last one ended.
 */
export async function* walkBack(asker: Asker, walk: WalkBack): AsyncGenerator<Slice, FarEnd> {
  const { from, floor, mostPages } = walk;
  const first = await askNewest(asker, walk);
  if (!first) return UNSEEN;
  // Only a full page that is empty says something: rows may be hidden, and a smaller page sees less far.
  const isFull = first.step.limit === asker.mostRows;
  if (first.answer.count === 0) return isFull ? { above: undefined, emptyFrom: from } : UNSEEN;
  yield delivered(first.answer.rows, first.answer.rejected);

  let { answer: last, step } = first;
  let above = last.oldest;
  let overlap = leastOverlap(asker);
  for (let pages = 1; pages < mostPages && floor !== undefined && above !== undefined && above >= floor; pages++) {
    const next = nextStep(step.end, tiesAt(last, above) + overlap, asker.profile.pageRows);
    if (!next) break;
    const answer = await askOn(asker, walk, next);
    if (!answer || answer.count === 0 || sameRows(last, answer)) break;
    yield delivered(answer.rows, answer.rejected);
    if (answer.newest !== undefined && answer.oldest !== undefined && answer.newest > above) {
      above = Math.min(above, answer.oldest);
      [last, step, overlap] = [answer, next, leastOverlap(asker)];
    } else {
      // Rows vanished in between and the pages no longer meet: once more, from further back.
      overlap *= 4;
    }
  }
  return { above, emptyFrom: undefined };
}

/** A little more than the ties at a page's edge, so that a few rows deleted meanwhile do not tear the walk. */
export const leastOverlap = ({ profile }: Asker): number => Math.max(1, Math.min(5, profile.pageRows >> 2));

/**
 * The newest page; smaller where the full one cannot be had, because of its size or of one row that breaks it. Undefined
 * where that is the newest row itself: then the far end cannot be seen, which is no reason to stop.
 */
export async function askNewest(
  asker: Asker,
  { from, until }: Pick<WalkBack, 'from' | 'until'>,
): Promise<{ answer: Answer; step: Step } | undefined> {
  const full = asker.profile.pageRows;
  for (let limit = full; ; limit = Math.floor(limit / 2)) {
    try {
      const answer = await asker.ask({ order: 'desc', from, until, page: 1, limit, once: limit < full });
      return { answer, step: firstStep(limit) };
    } catch (error) {
      if (!mayBeOnePage(error)) throw error;
      // Recovery: half as many rows, down to one, unless the service is not there at all. If one fails too it is the newest row.
      if (limit === full || limit === 1) await assertThere(asker);
      if (limit === 1) return undefined;
    }
  }
}

/** A deeper page. Services that cannot serve one end the walk there; what it delivered stays delivered. */
async function askOn(asker: Asker, { from, until }: WalkBack, { page, limit }: Step): Promise<Answer | undefined> {
  try {
    return await asker.ask({ order: 'desc', from, until, page, limit });
  } catch (error) {
    if (mayBeOnePage(error)) return undefined;
    throw error;
  }
}
