import { parseDate } from '../model/dates.ts';
import { type Instant, toIso } from '../model/instant.ts';
import { DAY_MS, startOfDay, type Window } from '../model/window.ts';
import type { JsonSchema } from './json-schema.ts';
import { type Ask, Refusal } from './route.ts';

/** Parameters that several routes share, and how they are read. The form was checked against the schema before. */
export const date: JsonSchema = {
  type: 'string',
  maxLength: 40,
  description: '2026-11-01, 2026-11-01T10:00Z, 7d (that long ago) or now, in UTC',
};

export const limit = (usual: number): JsonSchema => ({ type: 'integer', minimum: 1, maximum: 500, default: usual });

export const limitOf = ({ params }: Ask, usual: number): number => Number(params.limit ?? usual);

/** `from` and `to`, each with what it is when nobody said. */
export function windowOf({ params }: Ask, usual: Window, now: Instant = Date.now()): Window {
  const window = {
    start: params.from === undefined ? usual.start : dateOf('from', params.from, now),
    end: params.to === undefined ? usual.end : dateOf('to', params.to, now),
  };
  if (window.start < window.end) return window;
  throw new Refusal(400, `from (${toIso(window.start)}) is not before to (${toIso(window.end)})`, {
    next: 'to is exclusive: for one day, give the next day as to',
  });
}

export function dateOf(name: string, value: string, now: Instant = Date.now()): Instant {
  const instant = parseDate(value, now);
  if (instant !== undefined) return instant;
  throw new Refusal(400, `${name} is no date`, {
    next: 'write 2026-11-01, 2026-11-01T10:00Z, 7d (that long ago) or now; dates are UTC',
  });
}

export const isoDay = (at: Instant): string => toIso(startOfDay(at)).slice(0, 10);

/** The day after the last one that has a part in it. */
export const endOfDays = (end: Instant): Instant => startOfDay(end - 1) + DAY_MS;

export const isoOrNull = (at: Instant | null | undefined): string | null =>
  at === null || at === undefined ? null : toIso(at);
