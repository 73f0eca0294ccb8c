import type { Instant } from '../model/instant.ts';
import type { Answer, Asker } from './ask.ts';
import { sameRows } from './frontier.ts';
import { mayBeOnePage } from './poison.ts';
import type { FarEnd, Slice } from './reader.ts';
import { firstStep, nextStep, type Step } from './steps.ts';

export interface WalkBack {
  /** Asks for nothing older than this. */
  from: Instant;
  /** Everything older is known: the walk ends when a page reaches behind it. Undefined: one page. */
  floor: Instant | undefined;
  mostPages: number;
}

/** A little more than the ties at a page's edge, so that a few rows deleted meanwhile do not tear the walk. */
const OVERLAP = 5;
const MOST_OVERLAP = 500;

/**
 * From the newest row back, page by overlapping page, delivering as it goes. A descending page proves every row strictly
 * newer than its oldest; the next one carries that on only if it begins before the last one ended.
 */
export async function* walkBack(asker: Asker, { from, floor, mostPages }: WalkBack): AsyncGenerator<Slice, FarEnd> {
  const first = await askNewest(asker, from);
  if (first.answer.count === 0) return { above: undefined, empty: true };
  yield sliceOf(first.answer);

  let { answer: last, step } = first;
  let above = last.oldest;
  let overlap = OVERLAP;
  for (let pages = 1; pages < mostPages && floor !== undefined && above !== undefined && above >= floor; pages++) {
    const edge = above;
    const ties = last.rows.filter((row) => row.at === edge).length;
    const next = nextStep(step.end, ties + overlap, asker.profile.pageRows);
    if (!next) break;
    const answer = await askOn(asker, from, next);
    if (!answer || answer.count === 0 || sameRows(last, answer)) break;
    yield sliceOf(answer);
    if (answer.newest !== undefined && answer.oldest !== undefined && answer.newest > above) {
      above = Math.min(above, answer.oldest);
      [last, step, overlap] = [answer, next, OVERLAP];
    } else {
      // Rows vanished in between and the pages no longer meet: once more, from further back.
      overlap *= 4;
      if (overlap > MOST_OVERLAP) break;
    }
  }
  return { above, empty: false };
}

/** The newest page; smaller where the full one cannot be had, because of its size or of one row that breaks it. */
async function askNewest(asker: Asker, from: Instant): Promise<{ answer: Answer; step: Step }> {
  const full = asker.profile.pageRows;
  for (let limit = full; ; limit = Math.floor(limit / 2)) {
    try {
      const answer = await asker.ask({ order: 'desc', from, page: 1, limit, once: limit < full });
      return { answer, step: firstStep(limit) };
    } catch (error) {
      // Recovery: half as many rows. At a single row there is nothing left to halve.
      if (limit === 1 || !mayBeOnePage(error)) throw error;
    }
  }
}

/** A deeper page. Services that cannot serve one end the walk there; what it delivered stays delivered. */
async function askOn(asker: Asker, from: Instant, { page, limit }: Step): Promise<Answer | undefined> {
  try {
    return await asker.ask({ order: 'desc', from, page, limit });
  } catch (error) {
    if (mayBeOnePage(error)) return undefined;
    throw error;
  }
}

const sliceOf = ({ rows, rejected }: Answer): Slice => ({ window: undefined, certified: false, rows, rejected });
