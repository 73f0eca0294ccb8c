import type { Instant } from '../model/instant.ts';
import type { Answer } from './ask.ts';
import { joins } from './frontier.ts';
import { passInstant } from './instant-pass.ts';
import { delivered, type Progress } from './progress.ts';
import type { Slice } from './reader.ts';
import { walkBack } from './walk-back.ts';

/**
 * Closes a sweep from the other side. The newest page proves every row newer than its oldest; if that reaches behind the
 * frontier, nothing is left in between. An empty page proves nothing by itself: both ends must be empty.
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

  if (far.empty && near.count === 0) {
    yield progress.finish();
    return false;
  }
  // All that is left shares the frontier's own instant: no page can show it between two neighbours.
  if (far.above === frontier.at && !frontier.inclusive) yield* takeInstant(progress, from);
  if (joins(frontier, far.above)) yield progress.finish();
  return far.above !== undefined && far.above > frontier.at;
}

/** Delivers every row of the frontier's instant and says so, or leaves that instant uncertified and goes on behind it. */
export async function* takeInstant(progress: Progress, from: Instant): AsyncGenerator<Slice, void> {
  const { asker, frontier } = progress;
  const { rows, rejected, proven, past } = await passInstant(asker, from, frontier.at);
  if (proven) {
    yield delivered(rows, rejected);
    progress.includeInstant();
  } else {
    const note = `the rows of one instant could not be counted: ${rows.length} found, perhaps more`;
    yield progress.advance({ rows, rejected }, frontier.at + 1, { certified: false, note });
  }
  if (past?.newest !== undefined && joins(frontier, past.oldest)) yield progress.advance(past, past.newest);
}
