import type { Window } from '../model/window.ts';
import type { Answer, Asker } from './ask.ts';
import { closeFromFarEnd } from './far-end.ts';
import { joins } from './frontier.ts';
import { mayBeOnePage } from './poison.ts';
import { createProgress, type Progress } from './progress.ts';
import type { FarEnd, Slice } from './reader.ts';
import { roundPoison } from './round-poison.ts';
import { walkOn } from './walk-on.ts';

const UNKNOWN: FarEnd = { above: undefined, empty: false };

/**
 * Reads a window from its start to its end: the chain. Each question asks for the oldest rows from the frontier on, so
 * no page number grows and nothing that shifts elsewhere can tear it. Where the chain cannot move (the end of the data, a
 * tie group larger than a page, a server that widens bounds to days, hidden rows), the frontier is carried on by other
 * pages under the same rule, or what is left is called uncertified.
 */
export async function* sweep(asker: Asker, window: Window, far: FarEnd = UNKNOWN): AsyncGenerator<Slice, void> {
  const progress = createProgress(asker, window);
  while (!progress.isDone()) {
    // The tail has delivered everything newer than this already.
    if (joins(progress.frontier, far.above)) return yield progress.finish();
    const stood = progress.frontier.at;
    yield* chainOn(progress, far);
    if (progress.frontier.at === stood) return yield progress.finish(undefined, OUT_OF_REACH);
  }
}

const OUT_OF_REACH = { certified: false, note: 'rows lie ahead that no page shows together with what is known' };

/** One link of the chain, or whatever carries the frontier over the place where it cannot move. */
async function* chainOn(progress: Progress, far: FarEnd): AsyncGenerator<Slice, void> {
  const { asker, frontier } = progress;
  const stood = frontier.at;
  const from = stood - asker.profile.tickMs;
  let answer: Answer;
  try {
    answer = await askFromFrontier(progress, from);
  } catch (error) {
    if (!mayBeOnePage(error)) throw error;
    // Recovery: find the row that breaks the page, set it aside, go on behind it.
    return yield* roundPoison(progress, from, error);
  }
  if (answer.newest !== undefined && answer.newest > stood) return yield progress.advance(answer, answer.newest);
  if (far.empty && answer.count === 0) return yield progress.finish();

  // Stuck. A page that is mostly full has more behind it; any other is more likely the end of the data.
  const isCrowded = answer.count * 2 > asker.profile.pageRows;
  if (isCrowded) yield* walkOn(progress, from, answer, { rowsAhead: false });
  if (frontier.at > stood) return;
  const rowsAhead = yield* closeFromFarEnd(progress, from, answer);
  if (frontier.at === stood && rowsAhead) yield* walkOn(progress, from, answer, { rowsAhead });
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
