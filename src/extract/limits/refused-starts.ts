import { StopStream } from '../../model/errors.ts';
import type { Instant } from '../../model/instant.ts';
import { DAY_MS, describeInstant } from '../../model/window.ts';
import { newestPage } from '../page-backward.ts';
import type { PageFetcher } from '../pages/page-fetcher.ts';
import { unlessRefused } from '../pages/range-limits.ts';
import type { PageResult } from '../pages/received.ts';

/** Old starts may be refused, or show nothing although there are rows: beyond the plan's retention, or before the history. */

export const nothingBefore = (from: Instant): string =>
  `the service refuses questions that start before ${describeInstant(from)}, or shows nothing for them`;

/** Whether questions that begin there fail while the latest day is readable. One row might fail by itself, two in a row do not. */
export async function* isStartRefused(fetcher: PageFetcher, start: Instant): AsyncGenerator<PageResult, boolean> {
  for (const page of [1, 2]) {
    const shown = await fetcher.attempt({ order: 'asc', start, step: { page, limit: 1 } }, { once: true });
    if (shown) return false;
  }
  return yield* isReadable(fetcher);
}

/** Whether the stream is readable at all, tested by asking for the latest day only. */
export async function* isReadable(fetcher: PageFetcher): AsyncGenerator<PageResult, boolean> {
  try {
    const page = yield* newestPage(fetcher, fetcher.clock.now() - DAY_MS);
    return page !== undefined;
  } catch (error) {
    if (error instanceof StopStream) return false;
    throw error;
  }
}

/** The first start that shows rows, found by bisection. */
export async function* findWhereRowsShow(
  fetcher: PageFetcher,
  at: Instant,
  until: Instant,
): AsyncGenerator<PageResult, Instant | undefined> {
  const show = async function* (start: Instant): AsyncGenerator<PageResult, boolean> {
    const page = await fetcher.attempt({ order: 'asc', start }, { once: true }).catch(unlessRefused);
    if (page) yield page;
    return page !== undefined && page.count > 0;
  };
  let [hidden, shown] = [at, Math.floor(until) - 1];
  if (shown <= hidden || !(yield* show(shown))) return undefined;
  while (shown - hidden > MOST_PRECISE_MS && fetcher.evidence.through(at) === undefined) {
    const middle = Math.floor((hidden + shown) / 2);
    if (yield* show(middle)) shown = middle;
    else hidden = middle;
  }
  return shown;
}

const MOST_PRECISE_MS = 1000;
