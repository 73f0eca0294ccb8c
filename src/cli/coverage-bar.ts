import type { CoverageSpan, CoverageState } from '../model/window.ts';
import type { StreamStatus } from '../sync/status.ts';
import { cut } from './terminal.ts';

const MARKS: Readonly<Record<CoverageState, string>> = { certified: '█', uncertified: '▒', gap: '·', open: '─' };

const COVERAGE_LEGEND = `${MARKS.certified} certified  ${MARKS.uncertified} could not be certified  ${MARKS.gap} gap  ${MARKS.open} not certified yet`;

/** Shown even if they fill only a part of a cell: a bar must not hide a gap. */
const SEVERE: readonly CoverageState[] = ['gap', 'uncertified'];

/** Time from left to right, in cells of equal length. */
export function coverageBar(spans: readonly CoverageSpan[], width: number): string {
  const start = spans[0]?.start ?? 0;
  const step = ((spans.at(-1)?.end ?? start) - start) / width;
  if (step === 0) return '';
  return Array.from({ length: width }, (_, i) => {
    const cell = { start: start + i * step, end: start + (i + 1) * step };
    const parts = spans.map((span) => ({
      state: span.state,
      time: Math.min(span.end, cell.end) - Math.max(span.start, cell.start),
    }));
    const present = parts.filter(({ time }) => time > 0).sort((a, b) => b.time - a.time);
    const severe = SEVERE.find((state) => present.some((part) => part.state === state));
    return MARKS[severe ?? present[0]?.state ?? 'open'];
  }).join('');
}

const LEAST_BAR = 10;

/** One bar for each stream and sink, from its beginning to now. */
export function bars(streams: readonly StreamStatus[], columns: number, isMany: boolean): string[] {
  const named = streams
    .filter(({ coverage }) => coverage.length > 0)
    .map((s) => ({ name: `${s.source}/${s.stream}${isMany ? ` ${s.sink}` : ''}`, ...s }));
  if (named.length === 0) return [];
  const rest = '  2026-11-01    now'.length;
  const wide = Math.min(columns - LEAST_BAR - rest, Math.max(...named.map(({ name }) => name.length)));
  const room = Math.max(LEAST_BAR, Math.min(columns, 120) - wide - rest);
  const lines = named.map(({ name, since, coverage }) => {
    const spans = coverage.map(({ start, end, state }) => ({ start: Date.parse(start), end: Date.parse(end), state }));
    return `${cut(name, wide).padEnd(wide)}  ${since?.slice(0, 10)}  ${coverageBar(spans, room)}  now`;
  });
  return ['', ...lines, COVERAGE_LEGEND, ''];
}
