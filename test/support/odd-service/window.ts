import { parseInstant } from '../model/instant.ts';
import { codeOf, type EventsQuery, HttpError, type Interval, invalid } from './params.ts';
import { type Traits, wordAndDuration, wordAndNumber } from './traits.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** The window that the query names, by its bounds, its interval or the default. */
export function askedWindow(query: EventsQuery, traits: Traits, now: number): { start: number; end: number } {
  const given = query.end === undefined ? undefined : readTime('end', query.end, now);
  if (query.start !== undefined) return { start: readTime('start', query.start, now), end: given ?? now };
  const end = traits.ignoreEndWithoutStart ? now : (given ?? now);
  const start =
    query.interval === undefined && traits.defaultWindow !== undefined
      ? end - traits.defaultWindow
      : startOf(query.interval ?? '24h', end, query.timezone);
  // Only an explicit start is refused; an interval is cut to the service's beginning.
  return { start: Math.max(start, Math.min(traits.founded ?? start, end)), end };
}

/** Dates, instants, `now` and phrases such as `3 hours ago`. */
function readTime(name: string, text: string, now: number): number {
  if (text === 'now') return now;
  const phrase = /^(\d+) (minute|hour|day|week)s? ago$/.exec(text);
  if (phrase) {
    const unit = { minute: 60_000, hour: HOUR, day: DAY, week: 7 * DAY }[phrase[2] ?? ''] ?? 0;
    return now - Number(phrase[1]) * unit;
  }
  // In a query a + of an offset arrives as a space.
  return (
    parseInstant(text.replace(/ (\d{2}:?\d{2})$/, (whole, zone) => (text.includes('T') ? `+${zone}` : whole))) ??
    invalid(name, `"${text}" is not a date and time`)
  );
}

function startOf(interval: Interval, end: number, timezone: string): number {
  switch (interval) {
    case '24h':
      return end - DAY;
    case '7d':
    case '30d':
    case '90d':
      return end - Number.parseInt(interval, 10) * DAY;
    case '1y':
      return end - 365 * DAY;
    case 'all':
      return Number.MIN_SAFE_INTEGER;
    default:
      return calendarStart(interval, end, timezone);
  }
}

/** The first instant of the month, quarter or year that holds the instant, on the calendar of the time zone. */
function calendarStart(interval: 'mtd' | 'qtd' | 'ytd', at: number, timezone: string): number {
  const [year = 0, month = 1] = localParts(at, timezone);
  const first = interval === 'ytd' ? 1 : interval === 'qtd' ? month - ((month - 1) % 3) : month;
  const asUtc = Date.UTC(year, first - 1, 1);
  const [y = 0, m = 1, d = 1, hour = 0, minute = 0, second = 0] = localParts(asUtc, timezone);
  return asUtc - (Date.UTC(y, m - 1, d, hour, minute, second) - asUtc);
}

function localParts(at: number, timeZone: string): number[] {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  return (['year', 'month', 'day', 'hour', 'minute', 'second'] as const).map((type) => parts.get(type) ?? 0);
}

/** The bounds that the service compares `timestamp` with, in whole milliseconds. */
export interface TimeRange {
  /** First instant that belongs to the window. */
  from: number;
  /** First instant after it. */
  until: number;
}

const UNITS: Record<string, number> = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };
const NOWHERE: TimeRange = { from: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY };

/** The range that the service really answers for the requested one, or an HttpError. */
export function answeredRange(asked: Asked, traits: Traits, now: number): TimeRange {
  let { start, end } = asked;
  if (start > end) {
    if (!traits.swapReversed) throw new HttpError('unprocessable_entity', 'invalid start: it is after end');
    [start, end] = [end, start];
  }
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
  // As `toEndOfDay` does: the unit that holds `end` is taken whole.
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

/** Applies the plan's limits on age and length of a range. Undefined: the service answers with no rows, without an error. */
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

/** The start of the unit that holds the instant. Sign −1 mirrors the time line, which gives the start of the next unit. */
function beginOf(at: number, text: string, sign = 1): number {
  const { ms, zoneMs } = unitOf(text);
  return Math.floor((at + sign * zoneMs) / ms) * ms - sign * zoneMs;
}
