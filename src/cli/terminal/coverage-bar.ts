import type { CoverageSpan, CoverageState } from '../../model/coverage-spans.ts';

const MARKS: Readonly<Record<CoverageState, string>> = { certified: '█', uncertified: '▒', gap: '·', open: '─' };

export const COVERAGE_LEGEND = `${MARKS.certified} proven  ${MARKS.uncertified} read, not proven  ${MARKS.gap} gap  ${MARKS.open} not read yet`;

/** These show even where they fill the smallest part of a cell: a bar that hides a gap is worse than none. */
const GRAVE: readonly CoverageState[] = ['gap', 'uncertified'];

/** Time from left to right, a cell for each equal part of it. */
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
    const grave = GRAVE.find((state) => present.some((part) => part.state === state));
    return MARKS[grave ?? present[0]?.state ?? 'open'];
  }).join('');
}
