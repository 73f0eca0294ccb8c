import { SINK_CHANGED } from '../cursor/ledger.ts';
import { type Instant, toIso } from '../model/instant.ts';
import { DAY_MS, type Entry, gaps, HOUR_MS, merged, NOTHING_YET, startOfDay, type Window } from '../model/window.ts';

/** Which windows a sync has to read, according to the ledger. Pure. */

/** What could not be proven is tried again, but not at every poll: it may cost hundreds of requests. */
const RETRY_UNCERTIFIED_MS = HOUR_MS;

/** From then on a window is tried once a day, as services do get fixed. The watermark stops before it. */
export const MOST_TRIES = 5;

export const restMs = (tries: number): number => (tries < MOST_TRIES ? RETRY_UNCERTIFIED_MS : DAY_MS);

/** It was proven, and the sink no longer holds it. */
export const isReopened = ({ certified, note }: Entry): boolean =>
  !certified && (note?.startsWith(SINK_CHANGED) ?? false);

/** Every window up to `end` that is not proven, and the last bit before the watermark again, for events that came late. */
export function unproven(ledger: readonly Entry[], whole: Window, again: Window | undefined, now: Instant): Window[] {
  const isSettled = ({ certified, note, readAt, tries = 0 }: Entry): boolean =>
    certified || (note !== NOTHING_YET && readAt > now - restMs(tries));
  const settled = ledger.filter(isSettled);
  const known = settled.flatMap((entry) => gaps(again ? [again] : [], entry));
  return gaps(known, whole);
}

/** After the end of a day: an hour for stragglers, and two days more for what batch imports bring. */
const DAY_MARKS_MS = [HOUR_MS, 2 * DAY_MS + HOUR_MS];
const NIGHTLY_AT_MS = 2 * HOUR_MS;

/** Backdated events slip in behind the watermark: each day again at D+1 and D+3, and with `resweepMs` every night. */
export function resweeps(ledger: readonly Entry[], now: Instant, resweepMs: number | undefined): Window[] {
  const tonight = startOfDay(now) + NIGHTLY_AT_MS;
  const isDue = (entry: Entry): boolean => {
    const proven = entry.provenAt;
    if (proven === undefined) return false;
    // It was read a while ago and could not be proven again.
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

/** One reading feeds every sink that needs it: what several need is read once, what one lacks is read for it alone. */
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

/** Appends a window. Neighbours with the same reason become one. */
export function addUnproven(list: Unproven[], window: Unproven): void {
  const last = list.at(-1);
  if (last?.end === window.start && last.note === window.note) last.end = window.end;
  else list.push({ ...window });
}

/** The parts of a window that are not proven, each with the note of the ledger. A part that was merely empty is left to the next poll. */
export function unsettled(ledger: readonly Entry[], window: Window): Unproven[] {
  const fine = ledger.filter(({ certified, note }) => certified || note === NOTHING_YET);
  return gaps(fine, window).flatMap((open) => {
    const read = ledger.filter((entry) => !entry.certified && entry.start < open.end && entry.end > open.start);
    const told = read.map(({ start, end, note }) => ({
      start: Math.max(start, open.start),
      end: Math.min(end, open.end),
      note: note ?? 'not proven',
    }));
    return [...told, ...gaps(told, open).map((part) => ({ ...part, note: 'not read yet' }))].sort(
      (a, b) => a.start - b.start,
    );
  });
}
