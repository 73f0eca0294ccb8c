import type { Instant } from '../model/instant.ts';
import type { Window } from '../model/window.ts';
import type { Answer, Asker } from './ask.ts';
import { type Frontier, rowsAhead } from './frontier.ts';
import type { Rejection, Slice } from './reader.ts';

/** A sweep under way: its frontier, and the slices that moving it makes. */
export interface Progress {
  readonly asker: Asker;
  readonly window: Window;
  /** The oldest instant that may be asked for. */
  readonly since: Instant;
  readonly frontier: Readonly<Frontier>;
  /** The frontier stands on a row: a page that begins at or before it must show that row again. */
  readonly onRow: boolean;
  isDone(): boolean;
  /** Moves the frontier to `to` by a page that the caller has shown to join. */
  advance(page: Page, to: Instant, doubt?: Doubt): Slice;
  /** Moves the frontier over what could not be read. */
  leap(to: Instant, doubt: Doubt): Slice;
  /** Moves the frontier to the window's end. */
  finish(page?: Page, doubt?: Doubt): Slice;
  /** Everything at the frontier's own instant has been delivered. */
  includeInstant(): void;
  /** The same question has a new chance: a fault has passed, or pages have become smaller. */
  askAgain(): void;
  /** Whether it does; the chance is used up by asking this. */
  mayAskAgain(): boolean;
}

export type Page = Pick<Answer, 'rows' | 'rejected'> & Partial<Pick<Answer, 'strays'>>;

/** What to say of a slice: that it is not proven, or that something in it was set aside. */
export interface Doubt {
  certified: boolean;
  note: string;
}

/** Halving a page down to one row takes ten chances. */
const MOST_CHANCES = 20;
const NO_ROWS: Page = { rows: [], rejected: [] };

export function createProgress(asker: Asker, window: Window, since: Instant): Progress {
  const frontier: Frontier = { at: window.start, inclusive: false };
  let onRow = false;
  let hasChance = false;
  let chances = 0;

  const move = (page: Page, to: Instant, doubt?: Doubt): Slice => {
    const end = Math.min(to, window.end);
    const rows = rowsAhead(page, frontier, end);
    const span = { start: frontier.at, end };
    // Where an instant was taken by itself, or something was set aside, some rows of the window came with other slices.
    const whole = page.rows.length > 0 && !frontier.inclusive && doubt === undefined;
    frontier.at = to;
    frontier.inclusive = false;
    chances = 0;
    return { window: span, certified: true, whole, rows, rejected: page.rejected, ...doubt };
  };

  return {
    asker,
    window,
    since,
    frontier,
    get onRow() {
      return onRow;
    },
    isDone: () => frontier.at >= window.end,
    advance(page, to, doubt) {
      onRow = true;
      return move(page, to, doubt);
    },
    leap(to, doubt) {
      onRow = false;
      return move(NO_ROWS, to, doubt);
    },
    finish: (page = NO_ROWS, doubt) => move(page, window.end, doubt),
    includeInstant() {
      frontier.inclusive = true;
    },
    askAgain() {
      hasChance = true;
      chances += 1;
    },
    mayAskAgain() {
      const may = hasChance && chances <= MOST_CHANCES;
      hasChance = false;
      return may;
    },
  };
}

/** Rows that are delivered without a word about completeness. */
export const delivered = (rows: Slice['rows'], rejected: readonly Rejection[] = []): Slice => ({
  window: undefined,
  certified: false,
  rows,
  rejected,
});
