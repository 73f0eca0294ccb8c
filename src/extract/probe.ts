import type { Page } from '../api/client.ts';
import { MAX_LIMIT } from '../api/params.ts';
import { StopStream } from '../model/errors.ts';
import type { Flatten } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import { holds, type Window } from '../model/window.ts';
import { mayBeTheRange, SHORT_MS } from './pages/range-limits.ts';
import { flattenAll } from './pages/received.ts';
import { mayBeThisPage, type RequestContext, type SendOptions } from './pages/send.ts';
import { notAhead, ourNow } from './service-clock.ts';

/** What one page shows of a window's beginning: enough to estimate how many rows there are and how long they will take. */
export interface Sample {
  /** Rows of the window on the page. */
  rows: number;
  /** Rows per millisecond around the page, counted or estimated. */
  density: number;
  /** The window has more rows than the page shows. */
  isFull: boolean;
  /** The time of its newest row; undefined without rows. */
  newest: Instant | undefined;
  /** Rows per millisecond in the newer half of the page: the rate may be rising. */
  newestDensity: number;
  serverNow: Instant | undefined;
  tookMs: number;
}

export type Probe = (window: Window, context: RequestContext) => Promise<Sample>;

export interface ProbeOptions extends Pick<SendOptions, 'api' | 'stream' | 'filters'> {
  flatten: Flatten;
}

export const createProbe =
  ({ api, stream, filters, flatten }: ProbeOptions): Probe =>
  async (window, { lane, signal }) => {
    const { start } = window;
    const { page, limit, end } = await largestPage(window, (asked, tries) => {
      const query = { stream, start, sortOrder: 'asc', page: 1, filters, ...asked } as const;
      return api.page(query, { lane, signal, tries });
    });
    const { records, serverNow: said, tookMs } = page;
    const all = flattenAll(records, flatten).rows;
    const rows = all.filter((row) => holds(window, row.at)).length;
    const isFull = records.length === limit;
    const isPart = end < window.end;
    // A full page shows the row rate there even if the service widened the window.
    const times = all.map((row) => row.at);
    const spanMs = Math.max(1, Math.max(...times) - Math.min(...times));
    const density = isFull ? all.length / spanMs : rows / Math.max(1, end - start);
    const serverNow = said === undefined ? undefined : notAhead(said, ourNow());
    const half = times.sort((a, b) => a - b).slice(times.length >> 1);
    const newest = half.at(-1);
    const newestDensity = isFull ? half.length / Math.max(1, (newest ?? 0) - (half[0] ?? 0)) : density;
    return { rows, density, isFull: isFull || isPart, newest, newestDensity, serverNow, tookMs };
  };

interface Asked {
  limit: number;
  end: Instant;
}

const FEW_TRIES = 2;

/** A full page or long range can be refused for its size or for one row: retries with a quarter of both, down to one row. */
async function largestPage(
  { start, end }: Window,
  ask: (asked: Asked, tries?: number) => Promise<Page>,
  limit = MAX_LIMIT,
): Promise<Asked & { page: Page }> {
  try {
    return { page: await ask({ limit, end }, limit > 1 ? FEW_TRIES : undefined), limit, end };
  } catch (error) {
    if (limit === 1 || !(mayBeThisPage(error) || mayBeTheRange(error))) throw error;
    // If the shortest one is refused as well, the key or the plan is the cause.
    if (limit === MAX_LIMIT && error instanceof StopStream)
      await ask({ limit: 1, end: Math.min(end, start + SHORT_MS) });
    return largestPage({ start, end: start + Math.ceil((end - start) / 4) }, ask, Math.max(1, limit >> 2));
  }
}
