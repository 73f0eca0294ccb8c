import type { Instant } from '../model/instant.ts';
import { DAY_MS, startOfDay, type Window } from '../model/window.ts';
import type { Answer, Asker } from './ask.ts';
import { closeFromFarEnd, isEmpty } from './far-end.ts';
import { joins, rowsAhead } from './frontier.ts';
import { mayBeOnePage } from './poison.ts';
import { createProgress, delivered, type Progress } from './progress.ts';
import type { FarEnd, Slice } from './reader.ts';
import { firstStep } from './steps.ts';
import { UNSEEN } from './walk-back.ts';
import { getPast, walkOn } from './walk-on.ts';

export interface Request {
  window: Window;
  since: Instant;
  far: FarEnd | undefined;
}

/**
 * Reads a window from its start to its end: the chain. Each question asks for the oldest rows from the frontier on, so
 * no page number grows and nothing that shifts elsewhere can tear it. Where the chain cannot move (the end of the data, a
 * tie group larger than a page, a server that widens bounds to days, hidden rows), the frontier is carried on by other
 * pages under the same rule, or what is left is called uncertified.
 */
export async function* sweep(asker: Asker, request: Request): AsyncGenerator<Slice, void> {
  const { window, since, far = UNSEEN } = request;
  const progress = createProgress(asker, window, since);
  let leaps = 0;
  if (await isEmpty(asker, far)) return yield progress.finish();
  while (!progress.isDone()) {
    // The tail has delivered everything newer than this already.
    if (joins(progress.frontier, far.above)) return yield progress.finish();
    const stood = progress.frontier.at;
    const isMoreAhead = yield* chainOn(progress);
    if (progress.frontier.at > stood || progress.mayAskAgain()) continue;
    // One place that cannot be proven must not keep the rest from being read: on behind it, further each time.
    const beyond = isMoreAhead ? placeBeyond(stood, leaps++) : undefined;
    if (beyond === undefined) return yield progress.finish(undefined, OUT_OF_REACH);
    yield progress.leap(beyond, OUT_OF_REACH);
  }
}

const OUT_OF_REACH = { certified: false, note: 'rows lie here that no page shows together with what is known' };

const LEAPS_MS = [2000, 60_000, 3_600_000];
const MOST_LEAPS = 12;

function placeBeyond(at: Instant, leaps: number): Instant | undefined {
  if (leaps >= MOST_LEAPS) return undefined;
  const leap = LEAPS_MS[leaps % (LEAPS_MS.length + 1)];
  return leap === undefined ? startOfDay(at) + DAY_MS : at + leap;
}

/**
 * One link of the chain, or whatever carries the frontier over the place where it cannot move. Returns whether there may
 * be more ahead.
 */
async function* chainOn(progress: Progress): AsyncGenerator<Slice, boolean> {
  const { asker, frontier } = progress;
  const stood = frontier.at;
  const step = firstStep(asker.profile.pageRows);
  let from = stood - asker.profile.tickMs;
  let answer: Answer;
  try {
    const whole = await askForWholeDay(asker, stood);
    if (whole) from = stood + NOON_MS;
    answer = whole ?? (await askFromFrontier(progress, from));
  } catch (error) {
    if (!mayBeOnePage(error)) throw error;
    const footing = yield* getPast(progress, from, step, error);
    if (footing && !progress.isDone()) yield* walkOn(progress, from, footing, { rowsAhead: true });
    return true;
  }
  if (answer.newest !== undefined && answer.newest > stood) {
    yield progress.advance(answer, answer.newest);
    return true;
  }

  // Stuck. What the page shows is delivered all the same, in case nothing carries the frontier on.
  yield delivered(rowsAhead(answer, frontier, progress.window.end), answer.rejected);
  // A page that is mostly full has more behind it; any other is more likely the end of the data.
  const footing = { step, last: answer, low: 1, clearOf: undefined };
  const isCrowded = answer.count * 2 > asker.profile.pageRows;
  if (isCrowded) yield* walkOn(progress, from, footing, { rowsAhead: false });
  if (frontier.at > stood) return true;
  const isMoreAhead = yield* closeFromFarEnd(progress, from);
  if (frontier.at === stood && isMoreAhead) yield* walkOn(progress, from, footing, { rowsAhead: true });
  return isMoreAhead;
}

const NOON_MS = DAY_MS / 2;

/**
 * A server that widens bounds to days takes a tick before midnight for the whole day before. From noon it shows the day
 * from midnight on; that it does must be seen on the page, or the question is asked as everywhere else.
 */
async function askForWholeDay({ ask, profile }: Asker, at: Instant): Promise<Answer | undefined> {
  if (profile.granularity !== 'day' || startOfDay(at) !== at) return undefined;
  const answer = await ask({ order: 'asc', from: at + NOON_MS, page: 1, limit: profile.pageRows });
  return answer.oldest !== undefined && answer.oldest < at + NOON_MS - 1000 ? answer : undefined;
}

/** How much further back to ask when the row at the frontier does not show: bounds may be rounded in ways nobody documents. */
const STEPS_BACK_MS = [60_000, 3_600_000];

/** The oldest rows from the frontier on. The row that the frontier stands on must be there again, unless it was deleted. */
async function askFromFrontier({ asker, frontier, onRow }: Progress, from: number): Promise<Answer> {
  const limit = asker.profile.pageRows;
  let answer = await asker.ask({ order: 'asc', from, page: 1, limit });
  for (const back of STEPS_BACK_MS) {
    if (!onRow || answer.oldest === undefined || answer.oldest <= frontier.at) break;
    const earlier = await asker.ask({ order: 'asc', from: from - back, page: 1, limit });
    // Further back may fill the page with what is known; then the first answer was the better one.
    if (earlier.newest === undefined || earlier.newest <= frontier.at) break;
    answer = earlier;
  }
  return answer;
}
