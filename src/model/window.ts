import { type Instant, toIso } from './instant.ts';

/** A span of time `[start, end)` in UTC: it holds its start and not its end, so neighbours never share an event. */
export interface Window {
  start: Instant;
  end: Instant;
}

export const DAY_MS = 86_400_000;

export const holds = (window: Window, at: Instant): boolean => at >= window.start && at < window.end;

export const startOfDay = (at: Instant): Instant => Math.floor(at / DAY_MS) * DAY_MS;

/** For people: `2026-11-01 00:00 to 2026-11-02 00:00 UTC (exclusive)`, with seconds and their parts only where there are any. */
export const describeRange = ({ start, end }: Window): string => `${moment(start)} to ${moment(end)} UTC (exclusive)`;

const moment = (at: Instant): string =>
  toIso(at)
    .replace('T', ' ')
    .replace(/(:00(\.0+)?|(\.0+))?Z$/, '');

/** For machines: metadata of files. */
export const describeWindow = ({ start, end }: Window): string => `[${toIso(start)}, ${toIso(end)})`;
