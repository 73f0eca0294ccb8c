import type { Instant } from '../model/instant.ts';
import { DAY_MS, startOfDay } from '../model/window.ts';
import type { Answer } from './ask.ts';
import { takeInstant } from './far-end.ts';
import { joins, rowsAhead, sameRows, tiesAt } from './frontier.ts';
import { diagnose, mayBeOnePage } from './poison.ts';
import { delivered, type Progress } from './progress.ts';
import type { Slice } from './reader.ts';
import { type Footing, roundPoison } from './round-poison.ts';
import { nextStep, type Step } from './steps.ts';
import { leastOverlap, walkBack } from './walk-back.ts';

/** Enough for a day of a million rows on a server that cannot split it. */
const MOST_PAGES = 2000;

/**
 * Goes on by page numbers where the chain cannot ask from the frontier itself. Each page overlaps the last in time, so the same
 * rule carries the frontier: page numbers only say where to look, never what is complete.
 */
export async function* walkOn(
  progress: Progress,
  from: Instant,
  footing: Footing,
  known: { rowsAhead: boolean },
): AsyncGenerator<Slice, void> {
  const { asker, frontier } = progress;
  let { step, last, low, clearOf } = footing;
  let overlap = leastOverlap(asker);

  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const next = nextStep(step.end, overlapAfter(last, frontier.at, overlap), asker.profile.pageRows, low);
    let answer: Answer | undefined;
    try {
      answer = next && (await asker.ask({ order: 'asc', from, page: next.page, limit: next.limit }));
    } catch (error) {
      if (!mayBeOnePage(error)) throw error;
      const further = next && (yield* getPast(progress, from, next, error));
      if (!further) return;
      ({ step, last, low, clearOf } = further);
      if (progress.isDone() || canChain(progress, from, clearOf)) return;
      continue;
    }

    const isNothing = answer?.count === 0 || (answer && sameRows(last, answer));
    if (isNothing && !known.rowsAhead) return;
    if (!next || !answer || isNothing) {
      // More ties than a page can overlap, or rows that are hidden: this instant needs a pass of its own.
      const past = yield* takeInstant(progress, { from, start: step });
      if (!past) return;
      [step, last, overlap] = [past.step, past.answer, leastOverlap(asker)];
    } else if (answer.newest === undefined || answer.newest <= frontier.at) {
      yield delivered(rowsAhead(answer, frontier, progress.window.end), answer.rejected);
      [step, last] = [next, answer];
      continue;
    } else if (joins(frontier, answer.oldest)) {
      yield progress.advance(answer, answer.newest);
      [step, last, overlap] = [next, answer, leastOverlap(asker)];
    } else {
      // Rows vanished in between and the pages no longer meet: once more, from further back.
      overlap *= 2;
      continue;
    }
    if (progress.isDone() || canChain(progress, from, clearOf)) return;
  }
}

/** Up to the frontier everything is known and no overlap is needed; from there on, more than the ties at the page's edge. */
function overlapAfter(last: Answer, at: Instant, overlap: number): number {
  if (last.newest === undefined || last.newest < at) return overlap;
  return tiesAt(last, last.newest) + overlap;
}

/** Whether the next question from the frontier shows something new, or would be widened back to the day that is being walked. */
function canChain({ asker: { profile }, frontier }: Progress, from: Instant, clearOf: Instant | undefined): boolean {
  const next = frontier.at - profile.tickMs;
  if (clearOf !== undefined && next <= clearOf) return false;
  return profile.granularity === 'exact' || next >= startOfDay(from) + DAY_MS;
}

/**
 * A page that fails although the service is there. Returns where the walk goes on, or nothing where it ends: the page
 * passes now, pages have become smaller, or the rest was reached from the other side or given up.
 */
export async function* getPast(
  progress: Progress,
  from: Instant,
  failed: Step,
  error: Error,
): AsyncGenerator<Slice, Footing | undefined> {
  const { asker } = progress;
  const diagnosis = await diagnose(asker, from, failed);
  switch (diagnosis.kind) {
    case 'passed':
      progress.askAgain();
      return undefined;
    case 'size':
      asker.profile.pageRows = diagnosis.limit;
      progress.askAgain();
      return undefined;
    case 'deep':
      yield* meetFromBehind(progress, from, error);
      return undefined;
    case 'poison':
      return yield* roundPoison(progress, from, failed, { position: diagnosis.position, error });
  }
}

async function* meetFromBehind(progress: Progress, from: Instant, error: Error): AsyncGenerator<Slice, void> {
  const { asker, frontier } = progress;
  const day = startOfDay(Math.max(from, frontier.at));
  // On a server that widens, the first second of a day is the whole day; so the way back starts there and not at the newest of all.
  const isOneDay = asker.profile.granularity === 'day' && day + DAY_MS < progress.window.end;
  const range = isOneDay ? { from: day, until: day + 1000 } : { from };
  const far = yield* walkBack(asker, { ...range, floor: frontier.at, mostPages: MOST_PAGES });
  const isMet = joins(frontier, far.above);
  if (isMet && !isOneDay) return yield progress.finish();
  // Else the rest of this day is out of reach from both sides; the days after it need not be.
  const doubt = isMet ? undefined : { certified: false, note: error.message };
  yield progress.advance({ rows: [], rejected: [] }, day + DAY_MS, doubt);
}
