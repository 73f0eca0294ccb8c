/**
 * Milliseconds since 1970 UTC, with a fraction if the service sent microseconds; further digits are cut off. Every format that services
 * write is parsed. A double holds microseconds from 1691 to 2248 (2^43 ms from 1970); outside of that, instants are whole milliseconds.
 */
export type Instant = number;

/** Years 1 to 9999: ISO text of others needs a sign and six digits, which Postgres and most readers refuse. */
export const EARLIEST: Instant = Date.parse('0001-01-01T00:00:00.000Z');
export const LATEST: Instant = Date.parse('9999-12-31T23:59:59.999Z');

/** Upper or lower case `T` and `Z`, as RFC 3339 allows; seconds, fraction and zone may be missing. */
const ISO =
  /^(\d{4}|[+-]\d{6})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?\s*(Z|z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?)?$/;

/** `Mon Jan 15 2024 10:30:00 GMT+0100 (Central European Standard Time)` and the HTTP form `Mon, 15 Jan 2024 10:30:00 GMT`. */
const WORDS =
  /^[A-Z][a-z]{2},? (?:([A-Z][a-z]{2}) (\d{1,2})|(\d{1,2}) ([A-Z][a-z]{2})) (\d{4}) (\d{2}):(\d{2}):(\d{2}) (?:GMT|UTC)([+-]\d{4})?(?: \(.*\))?$/;

const DIGITS = /^-?\d{9,19}$/;
const DIGITS_AND_FRACTION = /^-?\d{9,16}\.\d+$/;
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Reads an instant in any form services use, or returns undefined. Text without a zone is UTC. */
export function parseInstant(value: unknown): Instant | undefined {
  if (typeof value === 'string') return fromUsualIso(value) ?? fromText(value.trim());
  if (typeof value === 'number') return fromEpoch(value);
  return typeof value === 'bigint' ? fromLargeEpoch(value) : undefined;
}

function fromText(text: string): Instant | undefined {
  if (DIGITS.test(text)) return fromLargeEpoch(BigInt(text));
  if (DIGITS_AND_FRACTION.test(text)) return fromEpoch(Number(text));
  return fromIso(text) ?? fromWords(text);
}

/** Nearly every timestamp, digit by digit: ISO takes ten times as long. 29 February, 24:00 and :60 are left to it. */
function fromUsualIso(text: string): Instant | undefined {
  if (text.length !== 24 || text[4] !== '-' || text[7] !== '-' || text[10] !== 'T') return undefined;
  if (text[13] !== ':' || text[16] !== ':' || text[19] !== '.' || text[23] !== 'Z') return undefined;
  const year = two(text, 0) * 100 + two(text, 2);
  const month = two(text, 5);
  const day = two(text, 8);
  const hour = two(text, 11);
  const minute = two(text, 14);
  const second = two(text, 17);
  const ms = two(text, 20) * 10 + (two(text, 21) % 10);
  // Written so that NaN, the result of anything but digits, fails each comparison.
  if (!(year >= 1 && day >= 1 && day <= (DAYS[month - 1] ?? 0))) return undefined;
  if (!(hour <= 23 && minute <= 59 && second <= 59 && ms >= 0)) return undefined;
  return (((dayNumber(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms;
}

/** The value of two digits, or NaN. */
function two(text: string, at: number): number {
  const tens = text.charCodeAt(at) - 48;
  const ones = text.charCodeAt(at + 1) - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

/** Days since 1970. The year is counted from March, so that the leap day is its last. */
function dayNumber(year: number, month: number, day: number): number {
  const y = month > 2 ? year : year - 1;
  const m = month > 2 ? month - 3 : month + 9;
  const leaps = Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400);
  return y * 365 + leaps + Math.floor((m * 153 + 2) / 5) + day - 719_469;
}

/** Seconds, milliseconds, microseconds or nanoseconds, distinguished by size: each unit is a thousand times the last. */
function fromEpoch(n: number): Instant | undefined {
  const size = Math.abs(n);
  if (!Number.isFinite(n) || size < 1e8) return undefined;
  if (size < 1e11) return fromMicros(Math.round(n * 1e6));
  if (size < 1e14) return size < EXACT ? fromMicros(Math.round(n * 1000)) : inRange(Math.floor(n));
  if (size < 1e17) return fromMicros(Math.round(n));
  // A double this large is exact only to some hundred nanoseconds, so it is rounded to the nearest microsecond.
  return fromMicros(Math.round(n / 1000));
}

/** A double cannot hold nanoseconds: they are cut to microseconds while they are still exact. */
function fromLargeEpoch(n: bigint): Instant | undefined {
  if (n > -(10n ** 17n) && n < 10n ** 17n) return fromEpoch(Number(n));
  const micros = n / 1000n;
  return fromMicros(Number(micros * 1000n > n ? micros - 1n : micros));
}

function fromIso(text: string): Instant | undefined {
  const m = ISO.exec(text);
  if (!m) return undefined;
  const [year, month, day, hour, minute, second] = [m[1], m[2], m[3], m[4] ?? 0, m[5] ?? 0, m[6] ?? 0].map(Number);
  const micros = m[7] ? Number(`${m[7]}000000`.slice(0, 6)) : 0;
  return build([year, month, day, hour, minute, second], micros, m[8]);
}

function fromWords(text: string): Instant | undefined {
  const m = WORDS.exec(text);
  if (!m) return undefined;
  const month = MONTHS.indexOf(m[1] ?? m[4] ?? '') + 1;
  const [day, year, hour, minute, second] = [m[2] ?? m[3], m[5], m[6], m[7], m[8]].map(Number);
  return build([year, month, day, hour, minute, second], 0, m[9]);
}

type Parts = readonly (number | undefined)[];

/** Date.UTC rolls 30 February over into March; here that is no date at all. */
function build(parts: Parts, micros: number, zone: string | undefined): Instant | undefined {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts;
  const offset = offsetOf(zone);
  // 24:00 is the end of a day, so no later minute follows; :60 is a leap second, which Postgres and Parquet count as the next minute.
  if (hour > 24 || (hour === 24 && minute + second + micros > 0)) return undefined;
  if (minute > 59 || second > 60 || offset === undefined) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  const ms = date.getTime() + ((hour * 60 + minute) * 60 + second) * 1000 - offset;
  const isExact = Math.abs(ms + micros / 1000) < EXACT;
  return isExact ? fromMicros(ms * 1000 + micros) : inRange(ms + Math.floor(micros / 1000));
}

/** Milliseconds east of UTC; undefined for an impossible offset. */
function offsetOf(zone: string | undefined): number | undefined {
  const m = /^([+-])(\d{2}):?(\d{2})?$/.exec(zone ?? '');
  if (!m) return 0;
  const [hours, minutes] = [Number(m[2]), Number(m[3] ?? 0)];
  if (hours > 23 || minutes > 59) return undefined;
  return (m[1] === '-' ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

/** Beyond this, a double cannot count microseconds, and whole milliseconds must not be converted through them. */
const EXACT = 2 ** 43;

function fromMicros(micros: number): Instant | undefined {
  const ms = micros / 1000;
  return inRange(Math.abs(ms) < EXACT ? ms : Math.floor(ms));
}

const inRange = (ms: number): Instant | undefined => (ms >= EARLIEST && ms < LATEST + 1 ? ms : undefined);

/** `2026-11-14T10:30:00.123Z`; microseconds are printed only if there are any. */
export function toIso(instant: Instant): string {
  const floor = Math.floor(instant);
  const fraction = Math.round((instant - floor) * 1000);
  // Rounds up within half a microsecond of the next millisecond.
  const [ms, micros] = fraction === 1000 ? [floor + 1, 0] : [floor, fraction];
  const iso = new Date(ms).toISOString();
  return micros === 0 ? iso : `${iso.slice(0, -1)}${String(micros).padStart(3, '0')}Z`;
}

/** Durations as people type them: `90s`, `15m`, `1h`, `7d`, `2w`. */
const DURATION = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)$/;
const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

export function parseDuration(text: string): number | undefined {
  const m = DURATION.exec(text.trim());
  if (!m) return undefined;
  return Math.round(Number(m[1]) * (UNITS[m[2] ?? ''] ?? Number.NaN));
}
