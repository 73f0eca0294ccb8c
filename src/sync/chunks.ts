import type { Row } from '../model/flatten.ts';
import type { Instant } from '../model/instant.ts';
import type { Window } from '../model/window.ts';

/** A window of which not all may have been found, and why. */
export type Doubt = Window & { note: string };

/** Neighbours for one reason are one. */
export function addDoubt(doubts: Doubt[], doubt: Doubt): void {
  const last = doubts.at(-1);
  if (last?.end === doubt.start && last.note === doubt.note) last.end = doubt.end;
  else doubts.push({ ...doubt });
}

/** A window and every row that was found there. */
export interface Found {
  window: Window;
  rows: readonly Row[];
  /** Why these may not be all. */
  doubt: string | undefined;
}

/** A few of them together: enough rows that looking them up is worth the way. */
export interface Chunk {
  window: Window;
  rows: readonly Row[];
  doubts: readonly Doubt[];
}

const CHUNK_ROWS = 5000;

export async function* chunked(parts: AsyncIterable<Found>): AsyncGenerator<Chunk> {
  let open: { window: Window; rows: Row[]; doubts: Doubt[] } | undefined;
  for await (const { window, rows, doubt } of parts) {
    open ??= { window: { ...window }, rows: [], doubts: [] };
    open.window.end = window.end;
    open.rows.push(...rows);
    if (doubt !== undefined) addDoubt(open.doubts, { ...window, note: doubt });
    if (open.rows.length < CHUNK_ROWS) continue;
    yield open;
    open = undefined;
  }
  if (open) yield open;
}

/** Pages of rows in order of time, as windows that follow each other: rows of one instant are never in two of them. */
export async function* whole(pages: AsyncIterable<readonly Row[]>, { start, end }: Window): AsyncGenerator<Found> {
  let from: Instant = start;
  let waiting: Row[] = [];
  for await (const page of pages) {
    waiting.push(...page);
    const last = waiting.at(-1)?.at ?? from;
    const rows = waiting.filter((row) => row.at < last);
    if (rows.length === 0) continue;
    yield { window: { start: from, end: last }, rows, doubt: undefined };
    waiting = waiting.filter((row) => row.at >= last);
    from = last;
  }
  yield { window: { start: from, end }, rows: waiting, doubt: undefined };
}
