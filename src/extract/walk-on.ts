import type { Instant } from '../model/instant.ts';
import { DAY_MS, startOfDay } from '../model/window.ts';
import type { Answer } from './ask.ts';
import { takeInstant } from './far-end.ts';
import { joins, sameRows } from './frontier.ts';
import { mayBeOnePage } from './poison.ts';
import { delivered, type Progress } from './progress.ts';
import type { Slice } from './reader.ts';
import { nextStep, type Step } from './steps.ts';
import { walkBack } from './walk-back.ts';

/** Enough for a day of a million rows on a server that cannot split it. */
const MOST_PAGES = 2000;
const MOST_EMPTY_PAGES = 50;
const OVERLAP = 5;
const MOST_OVERLAP = 500;

/**
 * Goes on by page numbers where the chain cannot ask from the frontier itself. Each page overlaps the last in time, so the same
 * rule carries the frontier: page numbers only say where to look, never what is complete.
 */
export async function* walkOn(
  progress: Progress,
  from: Instant,
  first: Answer,
  known: { rowsAhead: boolean },
): AsyncGenerator<Slice, void> {
  const { asker, frontier } = progress;
  let covered = asker.profile.pageRows;
  let last = first;
  let overlap = OVERLAP;
  let emptyPages = first.count === 0 ? 1 : 0;

  for (let pages = 0; pages < MOST_PAGES; pages++) {
    if (isOneInstant(last, frontier.at)) return yield* takeInstant(progress, from);
    const step = nextStep(covered, overlapAfter(last, frontier.at, overlap), asker.profile.pageRows);
    if (!step) return;
    let answer: Answer;
    try {
      answer = await asker.ask({ order: 'asc', from, page: step.page, limit: step.limit });
    } catch (error) {
      if (!mayBeOnePage(error)) throw error;
      // Recovery: this server cannot go so deep, or a row breaks the page. Come from the other side.
      return yield* meetFromBehind(progress, from, error);
    }

    if (answer.count === 0 || sameRows(last, answer)) {
      emptyPages += 1;
      if (!known.rowsAhead || emptyPages > MOST_EMPTY_PAGES) return;
      covered = step.end;
    } else if (answer.newest === undefined || answer.newest <= frontier.at) {
      yield delivered([], answer.rejected);
      [covered, last] = [step.end, answer];
    } else if (joins(frontier, answer.oldest) || (await isStill(progress, from, step, answer, overlap, emptyPages))) {
      yield progress.advance(answer, answer.newest);
      [covered, last, overlap, emptyPages] = [step.end, answer, OVERLAP, 0];
      if (progress.isDone() || !isWidened(progress, from)) return;
    } else {
      // Rows vanished in between and the pages no longer meet: once more, from further back.
      overlap *= 4;
    }
  }
}

/** A page of a single instant has no inside: it proves nothing, and overlapping it would never get ahead. */
const isOneInstant = ({ oldest, newest }: Answer, at: Instant): boolean => oldest === at && newest === at;

/** Up to the frontier everything is known and no overlap is needed; from there on, more than the ties at the page's edge. */
function overlapAfter({ rows, newest }: Answer, at: Instant, overlap: number): number {
  if (newest === undefined || newest < at) return overlap;
  return rows.filter((row) => row.at === newest).length + overlap;
}

/**
 * Pages that no overlap can join: between them stand only rows that the service hides. Then it counts that the
 * same page reads the same again, so nothing moved while the empty ones were passed.
 */
async function isStill(
  { asker }: Progress,
  from: Instant,
  { page, limit }: Step,
  answer: Answer,
  overlap: number,
  emptyPages: number,
): Promise<boolean> {
  if (emptyPages === 0 && overlap <= MOST_OVERLAP) return false;
  return sameRows(answer, await asker.ask({ order: 'asc', from, page, limit }));
}

/** Whether the next question from the frontier would only be widened back to the day that is being walked. */
function isWidened({ asker: { profile }, frontier }: Progress, from: Instant): boolean {
  return profile.granularity === 'day' && frontier.at - profile.tickMs < startOfDay(from) + DAY_MS;
}

async function* meetFromBehind(progress: Progress, from: Instant, error: Error): AsyncGenerator<Slice, void> {
  const { asker, frontier } = progress;
  const far = yield* walkBack(asker, { from, floor: frontier.at, mostPages: MOST_PAGES });
  if (joins(frontier, far.above)) return yield progress.finish();
  // The rest of this day is out of reach from both sides; the days after it need not be.
  const nextDay = startOfDay(Math.max(from, frontier.at)) + DAY_MS;
  yield progress.advance({ rows: [], rejected: [] }, nextDay, { certified: false, note: error.message });
}
