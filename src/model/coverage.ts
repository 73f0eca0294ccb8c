import type { Instant } from './instant.ts';
import { startOfDay, type Window } from './window.ts';

/** Arithmetic of the ledger: what is covered, what is missing, how far completeness reaches. Pure, so it can be proven. */
export interface Entry extends Window {
  certified: boolean;
  rows: number;
  /** When this span was read, and, if it is certified, the oldest moment that any part of it was proven. */
  readAt: Instant;
  provenAt: Instant | undefined;
  runId: string;
  note: string | undefined;
}

/**
 * Lays a new reading over the entries it meets and returns all of them anew, in order, without overlaps.
 * The newest reading of a span replaces older ones, with one exception: what was proven stays proven when a later
 * reading could not prove it again, since a reading only adds rows.
 */
export function overlay(entries: readonly Entry[], added: Entry): Entry[] {
  const kept = entries.flatMap((entry) => (!added.certified && entry.certified ? [entry] : subtract(entry, added)));
  const proven = entries.filter((entry) => entry.certified);
  const news = added.certified
    ? [added]
    : proven.reduce((parts, entry) => parts.flatMap((p) => subtract(p, entry)), [added]);
  return coalesce([...kept, ...news].sort((a, b) => a.start - b.start));
}

/** The end of the unbroken run of certified spans from `since` on; undefined where nothing at all is proven there. */
export function completeThrough(entries: readonly Window[], since: Instant): Instant | undefined {
  let end = since;
  for (const entry of [...entries].sort((a, b) => a.start - b.start)) {
    if (entry.start > end) break;
    end = Math.max(end, entry.end);
  }
  return end > since ? end : undefined;
}

/** The parts of a window that no entry covers. */
export function gaps(entries: readonly Window[], window: Window): Window[] {
  return entries.reduce<Window[]>((open, entry) => open.flatMap((part) => subtract(part, entry)), [window]);
}

/** What is left of a span when another is cut out of it: nothing, one piece, or two. */
function subtract<T extends Window>(span: T, cut: Window): T[] {
  if (cut.end <= span.start || cut.start >= span.end) return [span];
  const left = cut.start > span.start ? [{ ...span, end: cut.start }] : [];
  const right = cut.end < span.end ? [{ ...span, start: cut.end }] : [];
  return [...left, ...right];
}

/** Neighbours of one day and one state become one entry: a stream polled every minute would else leave 1,440 a day. */
function coalesce(entries: readonly Entry[]): Entry[] {
  const result: Entry[] = [];
  for (const entry of entries) {
    const last = result.at(-1);
    if (
      last &&
      last.end === entry.start &&
      last.certified === entry.certified &&
      last.note === entry.note &&
      sameDay(last, entry)
    ) {
      result[result.length - 1] = join(last, entry);
    } else {
      result.push(entry);
    }
  }
  return result;
}

const sameDay = (a: Window, b: Window): boolean => startOfDay(a.start) === startOfDay(b.end - 1);

function join(a: Entry, b: Entry): Entry {
  const newer = a.readAt > b.readAt ? a : b;
  return {
    ...newer,
    start: a.start,
    end: b.end,
    rows: a.rows + b.rows,
    provenAt: a.provenAt === undefined || b.provenAt === undefined ? undefined : Math.min(a.provenAt, b.provenAt),
  };
}
