import { StopStream } from '../../model/errors.ts';
import type { Instant } from '../../model/instant.ts';
import { DAY_MS, describeInstant } from '../../model/window.ts';
import { newestPage } from '../page-backward.ts';
import type { PageFetcher } from '../pages/page-fetcher.ts';
import type { PageResult } from '../pages/received.ts';

/** Old starts can be refused, or answered with nothing although there are rows: by what a plan retains, or because the service is younger. */

export const darkBefore = (from: Instant): string =>
  `the service shows nothing, or refuses, when it is asked from before ${describeInstant(from)}`;

/** Whether nothing that begins there can be had, while the latest can. One row might fail by itself, two in a row do not. */
export async function* isStartRefused(fetcher: PageFetcher, start: Instant): AsyncGenerator<PageResult, boolean> {
  for (const page of [1, 2]) {
    const shown = await fetcher.attempt({ order: 'asc', start, step: { page, limit: 1 } }, { once: true });
    if (shown) return false;
  }
  return yield* isReadable(fetcher);
}

/** Whether the stream can be read at all, when it is asked for the latest only. */
export async function* isReadable(fetcher: PageFetcher): AsyncGenerator<PageResult, boolean> {
  try {
    const page = yield* newestPage(fetcher, fetcher.clock.now() - DAY_MS);
    return page !== undefined;
  } catch (error) {
    if (error instanceof StopStream) return false;
    throw error;
  }
}

/** The first start that shows some rows, found by halving. */
export async function* findWhereRowsShow(
  fetcher: PageFetcher,
  at: Instant,
  until: Instant,
): AsyncGenerator<PageResult, Instant | undefined> {
  const show = async function* (start: Instant): AsyncGenerator<PageResult, boolean> {
    try {
      const page = await fetcher.attempt({ order: 'asc', start }, { once: true });
      if (page) yield page;
      return page !== undefined && page.count > 0;
    } catch (error) {
      if (error instanceof StopStream) return false;
      throw error;
    }
  };
  let [dark, shown] = [at, Math.floor(until) - 1];
  if (shown <= dark || !(yield* show(shown))) return undefined;
  while (shown - dark > MOST_PRECISE_MS && fetcher.evidence.through(at) === undefined) {
    const middle = Math.floor((dark + shown) / 2);
    if (yield* show(middle)) shown = middle;
    else dark = middle;
  }
  return shown;
}

const MOST_PRECISE_MS = 1000;
