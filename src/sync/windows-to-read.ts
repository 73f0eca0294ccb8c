import { SINK_CHANGED } from '../cursor/ledger.ts';
import { type Instant, toIso } from '../model/instant.ts';
import { DAY_MS, type Entry, gaps, HOUR_MS, merged, NOTHING_YET, startOfDay, type Window } from '../model/window.ts';

/** Determines which windows a sync has to read, according to the ledger. Pure. */

/** Uncertified windows are retried, but not at every poll: that may cost hundreds of requests. */
const RETRY_UNCERTIFIED_MS = HOUR_MS;

/** After this many tries a window is retried once a day, as services may get fixed. The watermark stops before it. */
export const MOST_TRIES = 5;

export const restMs = (tries: number): number => (tries < MOST_TRIES ? RETRY_UNCERTIFIED_MS : DAY_MS);

/** The window was certified, and the sink no longer holds its rows. */
export const isReopened = ({ certified, note }: Entry): boolean =>
  !certified && (note?.startsWith(SINK_CHANGED) ?? false);

/** The windows in `whole` that are not proven, and `again`, the time just before the watermark, for events that arrived late. */
export function unproven(ledger: readonly Entry[], whole: Window, again: Window | undefined, now: Instant): Window[] {
  const isSettled = ({ certified, note, readAt, tries = 0 }: Entry): boolean =>
    certified || (note !== NOTHING_YET && readAt > now - restMs(tries));
  const settled = ledger.filter(isSettled);
  const known = settled.flatMap((entry) => gaps(again ? [again] : [], entry));
  return gaps(known, whole);
}

/** Times after the end of a day: one hour for late events, and two days more for batch imports. */
const DAY_MARKS_MS = [HOUR_MS, 2 * DAY_MS + HOUR_MS];
const NIGHTLY_AT_MS = 2 * HOUR_MS;

/** Backdated events may appear before the watermark: each day is read again at D+1 and D+3, and with `resweepMs` every night. */
export function resweeps(ledger: readonly Entry[], now: Instant, resweepMs: number | undefined): Window[] {
  const tonight = startOfDay(now) + NIGHTLY_AT_MS;
  const isDue = (entry: Entry): boolean => {
    const proven = entry.provenAt;
    if (proven === undefined) return false;
    // It was read again within the last hour, but could not be proven again.
    if (entry.readAt > proven && entry.readAt > now - RETRY_UNCERTIFIED_MS) return false;
    const dayEnd = startOfDay(entry.end - 1) + DAY_MS;
    if (DAY_MARKS_MS.some((mark) => now >= dayEnd + mark && proven < dayEnd + mark)) return true;
    return resweepMs !== undefined && entry.end > now - resweepMs && now >= tonight && proven < tonight;
  };
  return ledger.filter(isDue).map(({ start, end }) => ({ start, end }));
}

export const joined = (windows: readonly Window[]): Window[] =>
  merged(
    windows.map(({ start, end }) => ({ start, end })).sort((a, b) => a.start - b.start),
    (a, b) => (b.start <= a.end ? { start: a.start, end: Math.max(a.end, b.end) } : undefined),
  );

export interface Share {
  window: Window;
  sinks: ReadonlySet<string>;
}

/** Assigns windows to sinks: what several sinks need is read once, and what only one needs is read only for it. */
export function shared(needs: ReadonlyArray<{ sink: string; windows: readonly Window[] }>): Share[] {
  const all = needs.map(({ sink, windows }) => ({ sink, windows: joined(windows) }));
  const edges = [...new Set(all.flatMap(({ windows }) => windows.flatMap(({ start, end }) => [start, end])))];
  edges.sort((a, b) => a - b);
  const shares = edges.slice(0, -1).map((start, i): Share => {
    const end = edges[i + 1] ?? start;
    const isNeeded = (window: Window): boolean => window.start <= start && end <= window.end;
    const sinks = all.filter(({ windows }) => windows.some(isNeeded)).map(({ sink }) => sink);
    return { window: { start, end }, sinks: new Set(sinks) };
  });
  const together = merged(shares, (a, b) =>
    areSame(a.sinks, b.sinks) ? { ...a, window: { start: a.window.start, end: b.window.end } } : undefined,
  );
  return together.filter(({ sinks }) => sinks.size > 0);
}

const areSame = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean =>
  a.size === b.size && [...a].every((each) => b.has(each));

export const rangeOf = ({ start, end }: Window): { from: string; to: string } => ({
  from: toIso(start),
  to: toIso(end),
});

export type Unproven = Window & { note: string };

/** Appends a window. Adjacent windows with the same reason are merged. */
export function addUnproven(list: Unproven[], window: Unproven): void {
  const last = list.at(-1);
  if (last?.end === window.start && last.note === window.note) last.end = window.end;
  else list.push({ ...window });
}

/** The unproven parts of a window, each with the note of the ledger. Parts that were found empty are left to the next poll. */
export function unsettled(ledger: readonly Entry[], window: Window): Unproven[] {
  const settled = ledger.filter(({ certified, note }) => certified || note === NOTHING_YET);
  return gaps(settled, window).flatMap((open) => {
    const uncertified = ledger.filter((entry) => !entry.certified && entry.start < open.end && entry.end > open.start);
    const read = uncertified.map(({ start, end, note }) => ({
      start: Math.max(start, open.start),
      end: Math.min(end, open.end),
      note: note ?? 'not proven',
    }));
    return [...read, ...gaps(read, open).map((part) => ({ ...part, note: 'not read yet' }))].sort(
      (a, b) => a.start - b.start,
    );
  });
}
