import { parseInstant } from '../model/instant.ts';
import { type EventsQuery, type Interval, invalid } from './params.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** The window that the query names, by its bounds, its interval or the default. */
export function askedWindow(query: EventsQuery, now: number): { start: number; end: number } {
  const end = query.end === undefined ? now : readTime('end', query.end, now);
  if (query.start === undefined) return { start: startOf(query.interval ?? '24h', end, query.timezone), end };
  const start = readTime('start', query.start, now);
  if (start > end) invalid('start', 'it is after end');
  return { start, end };
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

const DAYS = { '24h': 1, '7d': 7, '30d': 30, '90d': 90, '1y': 365 } as const;

function startOf(interval: Interval, end: number, timezone: string): number {
  if (interval === 'all') return Number.MIN_SAFE_INTEGER;
  if (interval === 'mtd' || interval === 'qtd' || interval === 'ytd') return calendarStart(interval, end, timezone);
  return end - DAYS[interval] * DAY;
}

/** The first instant of the month, quarter or year that holds the instant, on the calendar of the time zone. */
function calendarStart(interval: 'mtd' | 'qtd' | 'ytd', at: number, timezone: string): number {
  const [year = 0, month = 1] = localParts(at, timezone);
  const first = interval === 'ytd' ? 1 : interval === 'qtd' ? month - ((month - 1) % 3) : month;
  const asUtc = Date.UTC(year, first - 1, 1);
  const [y = 0, m = 1, d = 1, hour = 0, minute = 0, second = 0] = localParts(asUtc, timezone);
  return asUtc - (Date.UTC(y, m - 1, d, hour, minute, second) - asUtc);
}

/** Year, month, day, hour, minute and second: the calendar of Sweden writes them in this order. */
const localParts = (at: number, timeZone: string): number[] =>
  [...new Date(at).toLocaleString('sv-SE', { timeZone }).matchAll(/\d+/g)].map(Number);
