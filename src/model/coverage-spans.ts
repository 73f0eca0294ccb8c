import { type Entry, gaps } from './coverage.ts';
import type { Window } from './window.ts';

/** What is known of a span of time: proven, read and not proven, passed over, or not reached yet. */
export type CoverageState = 'certified' | 'uncertified' | 'gap' | 'open';

export interface CoverageSpan extends Window {
  state: CoverageState;
}

/** The whole window, in order and without holes: every moment of it has one state. Neighbours of one state are one span. */
export function coverageSpans(
  entries: readonly Pick<Entry, 'start' | 'end' | 'certified'>[],
  whole: Window,
): CoverageSpan[] {
  const reached = entries.reduce((end, entry) => Math.max(end, entry.end), whole.start);
  const read = entries.map(({ start, end, certified }) => ({
    start: Math.max(start, whole.start),
    end: Math.min(end, whole.end),
    state: certified ? ('certified' as const) : ('uncertified' as const),
  }));
  const unread = gaps(entries, whole).flatMap(({ start, end }) => [
    { start, end: Math.min(end, reached), state: 'gap' as const },
    { start: Math.max(start, reached), end, state: 'open' as const },
  ]);
  const spans: CoverageSpan[] = [];
  for (const span of [...read, ...unread].filter(({ start, end }) => start < end).sort((a, b) => a.start - b.start)) {
    const last = spans.at(-1);
    if (last?.state === span.state && last.end === span.start) last.end = span.end;
    else spans.push({ ...span });
  }
  return spans;
}
