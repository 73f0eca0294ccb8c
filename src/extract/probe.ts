import type { Page } from '../api/client.ts';
import type { EventsApi } from '../api/events-api.ts';
import { MAX_LIMIT } from '../api/params.ts';
import type { Flatten } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import { holds, type Window } from '../model/window.ts';
import { flattenAll, mayBeThisPage, type RequestContext } from './page-fetcher.ts';
import { believed, ourNow } from './service-clock.ts';

/** What one page shows of a window's beginning: enough to guess how many rows there are and how long they will take. */
export interface Sample {
  /** Rows of the window on the page. */
  rows: number;
  /** Rows per millisecond where the page lies, counted or guessed. */
  density: number;
  /** There is more than the page holds. */
  isFull: boolean;
  /** The time of its newest row; undefined where there is none. */
  newest: Instant | undefined;
  /** Rows per millisecond among the newer half of the page: rows may come faster and faster. */
  newestDensity: number;
  serverNow: Instant | undefined;
  tookMs: number;
}

export type Probe = (window: Window, context: RequestContext) => Promise<Sample>;

export interface ProbeOptions {
  api: EventsApi;
  stream: StreamName;
  filters: Readonly<Record<string, string>>;
  flatten: Flatten;
}

export const createProbe =
  ({ api, stream, filters, flatten }: ProbeOptions): Probe =>
  async (window, { lane, signal }) => {
    const { start, end } = window;
    const { page, limit } = await largestPage(async (rows) => {
      const query = { stream, start, end, sortOrder: 'asc', page: 1, limit: rows, filters } as const;
      return api.page(query, { lane, signal });
    });
    const { records, serverNow: said, tookMs } = page;
    const all = flattenAll(records, flatten).rows;
    const rows = all.filter((row) => holds(window, row.at)).length;
    const isFull = records.length === limit;
    // A full page shows how closely rows follow each other there, also where the service widened the window.
    const times = all.map((row) => row.at);
    const spanMs = Math.max(1, Math.max(...times) - Math.min(...times));
    const density = isFull ? all.length / spanMs : rows / Math.max(1, end - start);
    const serverNow = said === undefined ? undefined : believed(said, ourNow());
    const half = times.sort((a, b) => a - b).slice(times.length >> 1);
    const newest = half.at(-1);
    const newestDensity = isFull ? half.length / Math.max(1, (newest ?? 0) - (half[0] ?? 0)) : density;
    return { rows, density, isFull, newest, newestDensity, serverNow, tookMs };
  };

/** Full pages can be refused for their size or for one row on them: half as many rows, down to one. */
async function largestPage(ask: (rows: number) => Promise<Page>): Promise<{ page: Page; limit: number }> {
  for (let limit = MAX_LIMIT; ; limit >>= 1) {
    try {
      return { page: await ask(limit), limit };
    } catch (error) {
      if (limit === 1 || !mayBeThisPage(error)) throw error;
    }
  }
}
