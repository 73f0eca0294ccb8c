import type { Instant } from '../model/instant.ts';
import type { Asker } from './ask.ts';
import { joins } from './frontier.ts';
import { type InstantRequest, passInstant, type Sheet } from './instant-pass.ts';
import { attempt } from './poison.ts';
import type { Progress } from './progress.ts';
import type { FarEnd, Slice } from './reader.ts';
import { firstStep } from './steps.ts';
import { walkBack } from './walk-back.ts';

/**
 * Closes a sweep from the other side. The newest page proves every row newer than its oldest; if that reaches behind the
 * frontier, nothing is left in between. Returns whether rows are known to lie ahead that the frontier could not be carried to.
 */
export async function* closeFromFarEnd(progress: Progress, from: Instant): AsyncGenerator<Slice, boolean> {
  const { asker, frontier, since } = progress;
  const far = yield* walkBack(asker, { from: since - asker.profile.tickMs, floor: undefined, mostPages: 1 });

  if (await isEmpty(asker, far)) {
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

/**
 * Whether the stream shows nothing at all. An empty page proves nothing by itself, since rows can be hidden after they
 * were counted: the newest page and the oldest must both be empty, both as long as may be, and from the very beginning.
 */
export async function isEmpty(asker: Asker, { emptyFrom }: FarEnd): Promise<boolean> {
  if (emptyFrom === undefined) return false;
  const oldest = await attempt(asker, emptyFrom, firstStep(asker.mostRows), { once: false });
  return oldest?.count === 0;
}

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
