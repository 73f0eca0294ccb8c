import type { Attestation } from '../../cursor/holdings/attestations.ts';
import type { CountedWindow } from '../../cursor/holdings/window-rows.ts';
import type { Instant } from '../../model/instant.ts';
import { holds, type Window } from '../../model/window.ts';
import type { Held } from '../../sinks/sink.ts';

export const MOST_WINDOWS = 400;

/** Windows with few rows count as this many, because looking them up takes most of the time. */
const LEAST_ROWS = 50;

interface Count {
  windows(before: Instant | undefined): Promise<CountedWindow[]>;
  from: Attestation['next'];
  rows: number;
  within?: Window;
}

/** Continues the count, newest first, for up to `rows` rows. A large window is counted in parts, over several runs. */
export async function countOn(
  ask: (windows: readonly Window[]) => Promise<Held[]>,
  { windows, from, rows, within }: Count,
): Promise<{ suspects: Window[]; next: Attestation['next'] }> {
  const suspects: Window[] = [];
  let [left, next] = [rows, from];
  for (;;) {
    const page = await windows(next?.at);
    const all = page.filter(({ start, end }) => !within || (start < within.end && end > within.start));
    const parts: Array<{ window: CountedWindow; start: Instant; end: Instant; before: number }> = [];
    for (const window of all) {
      const isBegun = next !== undefined && holds(window, next.at - 1) && next.at < window.end;
      const end = isBegun ? (next?.at ?? window.end) : window.end;
      const expected = Math.max(LEAST_ROWS, (window.rows * (end - window.start)) / (window.end - window.start));
      const start = expected <= left ? window.start : Math.ceil(end - ((end - window.start) * left) / expected);
      if (left <= 0 || start >= end) break;
      parts.push({ window, start, end, before: isBegun ? (next?.rows ?? 0) : 0 });
      left -= expected;
    }
    const held = await ask(parts);
    for (const [i, { window, start, before }] of parts.entries()) {
      const { rows: found = 0, foreign } = held[i] ?? {};
      const isWhole = start === window.start;
      if (foreign !== undefined || (isWhole && before + found !== window.rows)) suspects.push(window);
      next = { at: start, rows: isWhole ? 0 : before + found };
    }
    if (parts.length < all.length) return { suspects, next };
    const last = page.at(-1);
    if (!last || page.length < MOST_WINDOWS) return { suspects, next: undefined };
    next = { at: last.start, rows: 0 };
  }
}
