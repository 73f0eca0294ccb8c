import { codeOf, HttpError } from '../../../src/sandbox/params.ts';
import { type Traits, wordAndDuration, wordAndNumber } from './traits.ts';

const HOUR = 3_600_000;

/** The bounds that the service compares `timestamp` with, in whole milliseconds. */
export interface TimeRange {
  /** The first instant of the window. */
  from: number;
  /** First instant after it. */
  until: number;
}

const UNITS: Record<string, number> = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };
const NOWHERE: TimeRange = { from: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY };

/** The range that the service answers for the requested one, or an HttpError. */
export function answeredRange(asked: Asked, traits: Traits, now: number): TimeRange {
  let { start, end } = asked;
  const { founded } = traits;
  if (founded !== undefined && start < founded) {
    const earliest = new Date(founded).toISOString();
    throw new HttpError('unprocessable_entity', `invalid start: the earliest date is ${earliest}`);
  }
  const granted = withinPlan({ start, end }, traits, now);
  if (!granted) return NOWHERE;
  ({ start, end } = granted);
  const shift = traits.shiftBounds ?? 0;
  const bounds = traits.bounds ?? 'exclusive-end';
  const startBelongs = bounds === 'inclusive' || bounds === 'exclusive-end';
  const endBelongs = bounds === 'inclusive' || bounds === 'exclusive-start';
  const range = { from: start + shift + (startBelongs ? 0 : 1), until: end + shift + (endBelongs ? 1 : 0) };

  const widenStart = traits.widenStart ?? traits.widen;
  const widenEnd = traits.widenEnd ?? traits.widen;
  if (widenStart) range.from = beginOf(start + shift, widenStart);
  // As `toEndOfDay` does: the unit with `end` is included completely.
  if (widenEnd) range.until = beginOf(end + shift, widenEnd) + unitOf(widenEnd).ms;
  if (traits.roundStart) range.from = -beginOf(-(start + shift), traits.roundStart, -1);
  if (traits.roundEnd) range.until = beginOf(end + shift, traits.roundEnd);
  if (traits.ignoreBounds === 'both' || traits.ignoreBounds === 'start') range.from = Number.NEGATIVE_INFINITY;
  if (traits.ignoreBounds === 'both' || traits.ignoreBounds === 'end') range.until = Number.POSITIVE_INFINITY;
  return range;
}

interface Asked {
  start: number;
  end: number;
}

/** Applies the plan's limits on age and length of a range. Undefined: the service answers without rows or error. */
function withinPlan({ start, end }: Asked, traits: Traits, now: number): Asked | undefined {
  if (traits.retention) {
    const { word, ms } = wordAndDuration(traits.retention, '30d');
    const oldest = now - ms;
    if (start < oldest) {
      if (word === 'empty') return undefined;
      if (word === 'clamp') start = Math.min(oldest, end);
      else refuse(word, `the plan shows events since ${new Date(oldest).toISOString()} only`);
    }
  }
  if (traits.maxSpan) {
    const { word, ms } = wordAndDuration(traits.maxSpan, '30d');
    if (end - start > ms) {
      if (word === 'empty') return undefined;
      if (word === 'clamp') end = start + ms;
      else refuse(word, 'the range is too wide');
    }
  }
  return { start, end };
}

export function refuse(status: string | number, message: string): never {
  throw new HttpError(codeOf(Number(status)), message, Number(status));
}

const unitOf = (text: string): { ms: number; zoneMs: number } => {
  const { word, number } = wordAndNumber(text, 0);
  return { ms: UNITS[word] ?? 1, zoneMs: number * HOUR };
};

/** The start of the unit with the instant. Sign −1 mirrors the timeline, which gives the start of the next unit. */
function beginOf(at: number, text: string, sign = 1): number {
  const { ms, zoneMs } = unitOf(text);
  return Math.floor((at + sign * zoneMs) / ms) * ms - sign * zoneMs;
}
