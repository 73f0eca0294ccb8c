/**
 * An instant is a number: milliseconds since 1970 UTC, with a fraction where the service gave microseconds.
 * Services write instants in many forms (ISO with or without milliseconds or zone, a space for the T, epoch digits, the
 * text of a JavaScript Date). All of them are parsed here, once; nothing in the house compares timestamps as text.
 */
export type Instant = number;

const ISO =
  /^(\d{4}|[+-]\d{6})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?\s*(Z|z|UTC|[+-]\d{2}(?::?\d{2})?)?)?$/;

/** `Mon Jan 15 2024 10:30:00 GMT+0100 (Central European Standard Time)` and the HTTP form `Mon, 15 Jan 2024 10:30:00 GMT`. */
const WORDS =
  /^[A-Z][a-z]{2},? (?:([A-Z][a-z]{2}) (\d{1,2})|(\d{1,2}) ([A-Z][a-z]{2})) (\d{4}) (\d{2}):(\d{2}):(\d{2}) (?:GMT|UTC)([+-]\d{4})?(?: \(.*\))?$/;

const DIGITS = /^-?\d{9,19}(?:\.\d+)?$/;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Postgres and Parquet both hold these years; anything outside is a typing error of the service, not an instant. */
const EARLIEST = Date.UTC(0, 0, 1) - 1900 * 365.25 * 86_400_000;
const LATEST = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Reads an instant in any form services use, or returns undefined. Text without a zone is UTC. */
export function parseInstant(value: unknown): Instant | undefined {
  if (typeof value === 'number' || typeof value === 'bigint') return fromEpoch(Number(value));
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  return fromIso(text) ?? fromWords(text) ?? (DIGITS.test(text) ? fromEpoch(Number(text)) : undefined);
}

/** Seconds, milliseconds, microseconds or nanoseconds, told apart by size: each unit is a thousand times the last. */
function fromEpoch(n: number): Instant | undefined {
  const size = Math.abs(n);
  if (!Number.isFinite(n) || size < 1e8) return undefined;
  if (size < 1e11) return inRange(toMicros(n * 1000));
  if (size < 1e14) return inRange(toMicros(n));
  if (size < 1e17) return inRange(n / 1000);
  return inRange(Math.floor(n / 1000) / 1000);
}

function fromIso(text: string): Instant | undefined {
  const m = ISO.exec(text);
  if (!m) return undefined;
  const [year, month, day, hour, minute, second] = [m[1], m[2], m[3], m[4] ?? 0, m[5] ?? 0, m[6] ?? 0].map(Number);
  const whole = utc(year, month, day, hour, minute, second);
  if (whole === undefined) return undefined;
  const fraction = m[7] ? Number(`${m[7]}000000`.slice(0, 6)) / 1000 : 0;
  return inRange(whole + fraction - offset(m[8]));
}

function fromWords(text: string): Instant | undefined {
  const m = WORDS.exec(text);
  if (!m) return undefined;
  const month = MONTHS.indexOf(m[1] ?? m[4] ?? '') + 1;
  const [day, year, hour, minute, second] = [m[2] ?? m[3], m[5], m[6], m[7], m[8]].map(Number);
  const whole = utc(year, month, day, hour, minute, second);
  return whole === undefined ? undefined : inRange(whole - offset(m[9]));
}

/** Date.UTC rolls 30 February over into March; here that is no date at all. */
function utc(year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0): number | undefined {
  if (hour > 24 || minute > 59 || second > 60) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  return date.getTime() + ((hour * 60 + minute) * 60 + second) * 1000;
}

function offset(zone: string | undefined): number {
  const m = /^([+-])(\d{2}):?(\d{2})?$/.exec(zone ?? '');
  if (!m) return 0;
  return (m[1] === '-' ? -1 : 1) * (Number(m[2]) * 60 + Number(m[3] ?? 0)) * 60_000;
}

const toMicros = (ms: number): number => Math.round(ms * 1000) / 1000;
const inRange = (ms: number): Instant | undefined => (ms >= EARLIEST && ms <= LATEST ? ms : undefined);

/** `2026-11-14T10:30:00.123Z`; microseconds are printed only where there are some. */
export function toIso(instant: Instant): string {
  const ms = Math.floor(instant);
  const iso = new Date(ms).toISOString();
  const micros = Math.round((instant - ms) * 1000);
  return micros === 0 ? iso : `${iso.slice(0, -1)}${String(micros).padStart(3, '0')}Z`;
}
