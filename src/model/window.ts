import { EARLIEST, type Instant, parseDuration, parseInstant, toIso } from './instant.ts';

/** A span of time `[start, end)` in UTC: it includes its start and excludes its end, so adjacent windows never share an event. */
export interface Window {
  start: Instant;
  end: Instant;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

export const holds = (window: Window, at: Instant): boolean => at >= window.start && at < window.end;

export const startOfDay = (at: Instant): Instant => Math.floor(at / DAY_MS) * DAY_MS;

/** Some calendar months earlier, or the last day of that month if it has no such day. */
function monthsBefore(now: Instant, months: number): Instant {
  const date = new Date(now);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() - months + 1, 0);
  date.setUTCDate(Math.min(day, date.getUTCDate()));
  return date.getTime();
}

/** `2026-11-01T10:00Z`, `7d` and `1mo` (before now), `today`, `yesterday` or `now`. Text without a zone is UTC. */
export function parseDate(text: string, now: Instant): Instant | undefined {
  const word = text.trim();
  if (word === 'now') return now;
  if (word === 'today') return startOfDay(now);
  if (word === 'yesterday') return startOfDay(now) - DAY_MS;
  const months = /^(\d{1,4})\s*mo$/.exec(word)?.[1];
  const ago = months === undefined ? parseDuration(text) : now - monthsBefore(now, Number(months));
  if (ago === undefined) return parseInstant(text);
  return now - ago >= EARLIEST ? now - ago : undefined;
}

export function daysOf<T extends Window>(window: T): T[] {
  const days: T[] = [];
  for (let start = window.start; start < window.end; start = startOfDay(start) + DAY_MS)
    days.push({ ...window, start, end: Math.min(window.end, startOfDay(start) + DAY_MS) });
  return days;
}

/** For people: `2026-11-01 00:00 to 2026-11-02 00:00 UTC (exclusive)`, with seconds and fractions only if there are any. */
export const describeRange = ({ start, end }: Window): string => `${moment(start)} to ${moment(end)} UTC (exclusive)`;

/** For people: `2026-11-01 04:20 UTC`. */
export const describeInstant = (at: Instant): string => `${moment(at)} UTC`;

/** For people: `2026-11-01 04:20`, next to a mention of UTC. */
export const moment = (at: Instant): string =>
  toIso(at)
    .replace('T', ' ')
    .replace(/(:00(\.0+)?|(\.0+))?Z$/, '');

export function duration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** 12,345 in any locale. */
export const figure = (n: number): string => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

export const counted = (n: number, noun: string): string => `${figure(n)} ${noun}${n === 1 ? '' : 's'}`;

/** For machines: metadata of files. */
export const describeWindow = ({ start, end }: Window): string => `[${toIso(start)}, ${toIso(end)})`;

/** The ledger's reason for a window without rows: an empty answer proves nothing before a later poll confirms it. */
export const NOTHING_YET = 'nothing is there yet; the next poll confirms it';

/** The same for a window that two polls found empty: once the stream shows a row, it is read again in any case. */
export const NOTHING_THERE = 'nothing was there at two polls';

/** Arithmetic of the ledger: covered time, missing time, and how far completeness reaches. Pure, so it can be proven. */
export interface Entry extends Window {
  certified: boolean;
  /** Rows of the sink. An estimate once a reading has split the entry: the ledger in the database counts them (`window-rows.ts`). */
  rows: number;
  /** `readAt`: when this span was last read. `provenAt`: if it is certified, when its part with the oldest proof was proven. */
  readAt: Instant;
  provenAt: Instant | undefined;
  runId: string;
  note: string | undefined;
  /** Runs in a row that read this span and could not prove it. */
  tries?: number | undefined;
}

/** The newest reading of a span counts. But a proof stays: a later reading only adds rows. */
export function overlay(entries: readonly Entry[], added: Entry): Entry[] {
  if (isEmpty(added)) return coalesce([...entries].sort((a, b) => a.start - b.start));
  // A span that stays proven was still read: a re-sweep that proves nothing is due again later, not at once.
  const kept = entries.flatMap((entry) =>
    !added.certified && entry.certified ? [{ ...entry, readAt: readAgain(entry, added) }] : cutOut(entry, added),
  );
  const proven = entries.filter((entry) => entry.certified);
  const fresh = added.certified
    ? [added]
    : proven.reduce<Entry[]>(
        (parts, entry) => parts.flatMap((part) => cutOut(part, entry)),
        [{ ...added, tries: triesOf(entries, added) }],
      );
  return coalesce([...kept, ...fresh].sort((a, b) => a.start - b.start));
}

const readAgain = (entry: Entry, added: Entry): Instant =>
  entry.start < added.end && entry.end > added.start ? Math.max(entry.readAt, added.readAt) : entry.readAt;

/** One more than before; a run that reads a span twice counts once. */
function triesOf(entries: readonly Entry[], added: Entry): number {
  const before = entries.filter((entry) => !entry.certified && entry.start < added.end && entry.end > added.start);
  return before.reduce((most, { tries = 1, runId }) => Math.max(most, runId === added.runId ? tries : tries + 1), 1);
}

/** The end of the contiguous certified spans from `since` on; undefined if nothing is proven there. */
export function completeThrough(entries: readonly Window[], since: Instant): Instant | undefined {
  let end = since;
  for (const entry of [...entries].sort((a, b) => a.start - b.start)) {
    if (entry.start > end) break;
    end = Math.max(end, entry.end);
  }
  return end > since ? end : undefined;
}

export function gaps(entries: readonly Window[], { start, end }: Window): Window[] {
  const window = { start, end };
  if (isEmpty(window)) return [];
  return entries.reduce<Window[]>((open, entry) => open.flatMap((part) => subtract(part, entry)), [window]);
}

export const within = (entries: readonly Window[], { start, end }: Window): Window[] =>
  entries
    .map((entry) => ({ start: Math.max(entry.start, start), end: Math.min(entry.end, end) }))
    .filter((part) => !isEmpty(part));

export function provenShare(entries: readonly Entry[], window: Window): number {
  if (isEmpty(window)) return 1;
  const proven = entries.filter(({ certified }) => certified);
  const openMs = gaps(proven, window).reduce((sum, { start, end }) => sum + end - start, 0);
  return 1 - openMs / (window.end - window.start);
}

/** A span minus another: nothing, one piece, or two. */
function subtract<T extends Window>(span: T, cut: Window): T[] {
  if (isEmpty(cut) || cut.end <= span.start || cut.start >= span.end) return [span];
  const left = cut.start > span.start ? [{ ...span, end: cut.start }] : [];
  const right = cut.end < span.end ? [{ ...span, start: cut.end }] : [];
  return [...left, ...right];
}

/** Rows are split by time: keeping the whole number in each piece would let it grow with every poll. */
function cutOut(entry: Entry, cut: Window): Entry[] {
  return subtract(entry, cut).map((piece) => {
    const share = (piece.end - piece.start) / (entry.end - entry.start);
    return share === 1 ? piece : { ...piece, rows: Math.round(entry.rows * share) };
  });
}

const isEmpty = ({ start, end }: Window): boolean => start >= end;

export function merged<T>(items: Iterable<T>, join: (last: T, next: T) => T | undefined): T[] {
  const result: T[] = [];
  for (const item of items) {
    const last = result.at(-1);
    const both = last && join(last, item);
    if (both) result[result.length - 1] = both;
    else result.push(item);
  }
  return result;
}

/** Joins adjacent entries of one day and state: a stream polled every minute would otherwise leave 1,440 a day. */
const coalesce = (entries: readonly Entry[]): Entry[] =>
  merged(entries, (a, b) =>
    a.end === b.start && a.certified === b.certified && a.note === b.note && sameDay(a, b) ? join(a, b) : undefined,
  );

const sameDay = (a: Window, b: Window): boolean => startOfDay(a.start) === startOfDay(b.end - 1);

function join(a: Entry, b: Entry): Entry {
  const newer = a.readAt > b.readAt ? a : b;
  return {
    ...newer,
    start: a.start,
    end: b.end,
    rows: a.rows + b.rows,
    tries: newer.certified ? undefined : Math.max(a.tries ?? 1, b.tries ?? 1),
    provenAt: a.provenAt === undefined || b.provenAt === undefined ? undefined : Math.min(a.provenAt, b.provenAt),
  };
}

export type CoverageState = 'certified' | 'uncertified' | 'gap' | 'open';

export interface CoverageSpan extends Window {
  state: CoverageState;
}

/** In order, without holes. A first sync has no gaps: it reads the newest first, and has skipped nothing. */
export function coverageSpans(
  entries: readonly Pick<Entry, 'start' | 'end' | 'certified'>[],
  whole: Window,
  { isFirstSync = false } = {},
): CoverageSpan[] {
  const reached = isFirstSync ? whole.start : entries.reduce((end, entry) => Math.max(end, entry.end), whole.start);
  const read = entries.map(({ start, end, certified }) => ({
    start: Math.max(start, whole.start),
    end: Math.min(end, whole.end),
    state: certified ? ('certified' as const) : ('uncertified' as const),
  }));
  const unread = gaps(entries, whole).flatMap(({ start, end }) => [
    { start, end: Math.min(end, reached), state: 'gap' as const },
    { start: Math.max(start, reached), end, state: 'open' as const },
  ]);
  const spans: CoverageSpan[] = [...read, ...unread].filter(({ start, end }) => start < end);
  return merged(
    spans.sort((a, b) => a.start - b.start),
    (a, b) => (a.state === b.state && a.end === b.start ? { ...a, end: b.end } : undefined),
  );
}
