import { type Instant, toIso } from '../model/instant.ts';
import type { Answer } from './ask.ts';
import { isolate, mayBeOnePage } from './poison.ts';
import type { Progress } from './progress.ts';
import type { Rejection, Slice } from './reader.ts';
import { stepAt } from './steps.ts';

const MOST_STEPS = 60;

/**
 * Goes round a row that makes every page fail that it stands on. What comes before it is read, the row itself is set aside
 * with what the service said, and the rows behind it are fetched by their position until the chain can go on without it.
 * No page can show the row's two neighbours together, so the window says what was set aside.
 */
export async function* roundPoison(progress: Progress, from: Instant, error: Error): AsyncGenerator<Slice, void> {
  const { asker, frontier } = progress;
  const { prefix, prefixRows, poison } = await isolate(asker, from, asker.profile.pageRows, error);
  if (prefix.newest !== undefined && prefix.newest > frontier.at) yield progress.advance(prefix, prefix.newest);
  if (!poison) {
    // No single row is to blame: the whole was too large. Smaller pages from here on.
    asker.profile.pageRows = Math.max(1, prefixRows);
    return;
  }

  const aside: Rejection[] = [reject(prefix.newest ?? from, poison.reason)];
  const doubt = { certified: true, note: 'a row that the service cannot show was set aside' };
  let behind: Instant | undefined;
  let position = poison.position + 1;
  for (let steps = 0; steps < MOST_STEPS; steps++) {
    const [step, single] = [
      stepAt(position, asker.profile.pageRows),
      { page: position + 1, limit: 1, end: position + 1 },
    ];
    const page = (await attempt(step)) ?? (await attempt(single));
    if (!page) {
      aside.push(reject(frontier.at, poison.reason, position));
      position += 1;
      continue;
    }
    const { answer, end } = page;
    if (answer.count === 0) break;
    position = end;
    behind ??= answer.oldest;
    if (answer.newest === undefined || answer.newest <= frontier.at) continue;
    yield progress.advance(
      { rows: answer.rows, rejected: [...answer.rejected, ...aside.splice(0)] },
      answer.newest,
      doubt,
    );
    if (behind !== undefined && answer.newest - asker.profile.tickMs > behind) return;
  }
  if (progress.isDone()) return;
  yield progress.finish(
    { rows: [], rejected: aside },
    { certified: false, note: 'the newest row cannot be shown by the service' },
  );

  async function attempt(step: {
    page: number;
    limit: number;
    end: number;
  }): Promise<{ answer: Answer; end: number } | undefined> {
    try {
      return {
        answer: await asker.ask({ order: 'asc', from, page: step.page, limit: step.limit, once: true }),
        end: step.end,
      };
    } catch (failure) {
      // Recovery: another such row on this page; the caller tries the rows one by one.
      if (mayBeOnePage(failure)) return undefined;
      throw failure;
    }
  }
}

/** The row itself was never seen: what is kept is where it stands. The same place makes the same entry next time. */
const reject = (after: Instant, reason: string, position?: number): Rejection => ({
  record: {
    unreadable: 'the service fails on every page that holds this row',
    after: toIso(after),
    ...(position && { position }),
  },
  reason,
});
