import { type Instant, toIso } from './instant.ts';

/** A span of time `[start, end)` in UTC: it holds its start and not its end, so neighbours never share an event. */
export interface Window {
  start: Instant;
  end: Instant;
}

export const DAY_MS = 86_400_000;

export const holds = (window: Window, at: Instant): boolean => at >= window.start && at < window.end;

export const startOfDay = (at: Instant): Instant => Math.floor(at / DAY_MS) * DAY_MS;

export const describeWindow = ({ start, end }: Window): string => `[${toIso(start)}, ${toIso(end)})`;
