import type { EventsApi } from '../api/events-api.ts';
import { MAX_LIMIT } from '../api/params.ts';
import type { Flatten } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import type { StreamName } from '../model/streams.ts';
import { holds, type Window } from '../model/window.ts';
import { flattenAll } from './ask.ts';
import type { Attendance } from './reader.ts';
import { believed, newestBy, ourNow } from './service-clock.ts';

/** What one page shows of a window's beginning: enough to guess how many rows there are and how long they will take. */
export interface Sample {
  /** Rows of the window on the page. */
  rows: number;
  /** Rows per millisecond where the page lies, counted or guessed. */
  density: number;
  /** There is more than the page holds. */
  isFull: boolean;
  serverNow: Instant | undefined;
  tookMs: number;
}

export type Probe = (window: Window, attendance: Attendance) => Promise<Sample>;

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
    const query = { stream, start, end, sortOrder: 'asc', page: 1, limit: MAX_LIMIT, filters } as const;
    const { records, serverNow: said, tookMs } = await api.page(query, { lane, signal });
    const all = flattenAll(records, flatten).rows;
    const rows = all.filter((row) => holds(window, row.at)).length;
    const isFull = records.length === MAX_LIMIT;
    // A full page shows how closely rows follow each other there, also where the service widened the window.
    const times = all.map((row) => row.at);
    const spanMs = Math.max(1, Math.max(...times) - Math.min(...times));
    const density = isFull ? all.length / spanMs : rows / Math.max(1, end - start);
    const serverNow = said === undefined ? undefined : believed(said, ourNow(), newestBy(said, times));
    return { rows, density, isFull, serverNow, tookMs };
  };
