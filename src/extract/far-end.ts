import type { Instant } from '../model/instant.ts';
import type { Answer } from './ask.ts';
import { joins } from './frontier.ts';
import { type InstantRequest, passInstant, type Sheet } from './instant-pass.ts';
import type { Progress } from './progress.ts';
import type { Slice } from './reader.ts';
import { firstStep } from './steps.ts';
import { walkBack } from './walk-back.ts';

/**
 * Closes a sweep from the other side. The newest page proves every row newer than its oldest; if that reaches behind the
 * frontier, nothing is left in between. An empty page proves nothing by itself: both ends must be empty, and no row known
 * from where they were asked.
 * Returns whether rows are known to lie ahead that the frontier could not be carried to.
 */
export async function* closeFromFarEnd(
  progress: Progress,
  from: Instant,
  near: Answer,
): AsyncGenerator<Slice, boolean> {
  const { asker, frontier } = progress;
  const low = Math.min(from, progress.anchor ?? from) - asker.profile.tickMs;
  const far = yield* walkBack(asker, { from: low, floor: undefined, mostPages: 1 });

  if (far.emptyFrom !== undefined && isEmpty(progress, near)) {
    yield progress.finish();
    return false;
  }
  if (far.above === frontier.at && !frontier.inclusive) {
    // All that is left shares the frontier's own instant: no page can show it between two neighbours.
    yield* takeInstant(progress, { from, start: firstStep(asker.profile.pageRows) });
    if (!frontier.inclusive && frontier.at === far.above) {
      yield progress.advance({ rows: [], rejected: [] }, frontier.at + 1, UNCOUNTED);
    }
  }
  if (!progress.isDone() && joins(frontier, far.above)) yield progress.finish();
  return far.above !== undefined && far.above > frontier.at;
}

/** A page as long as may be shows nothing, and no row is known that it should have shown. */
export const isEmpty = ({ asker, anchor }: Progress, near: Answer): boolean =>
  near.count === 0 && anchor === undefined && asker.profile.pageRows === asker.mostRows;

const UNCOUNTED = { certified: false, note: 'the rows of one instant could not be counted; there may be more' };

/**
 * Delivers every row of the frontier's instant and moves over it, certified or not; stays where nothing lies behind it.
 * Returns the page that carried it over.
 */
export async function* takeInstant(
  progress: Progress,
  request: Omit<InstantRequest, 'at'>,
): AsyncGenerator<Slice, Sheet | undefined> {
  const { asker, frontier } = progress;
  const { proven, past } = yield* passInstant(asker, { ...request, at: frontier.at });
  if (proven) progress.includeInstant();
  if (past?.answer.newest !== undefined) {
    yield progress.advance(past.answer, past.answer.newest, proven ? undefined : UNCOUNTED);
  }
  return past;
}
