import type { CoverageSpan, CoverageState } from '../model/window.ts';

const MARKS: Readonly<Record<CoverageState, string>> = { certified: '█', uncertified: '▒', gap: '·', open: '─' };

export const COVERAGE_LEGEND = `${MARKS.certified} certified  ${MARKS.uncertified} could not be certified  ${MARKS.gap} gap  ${MARKS.open} not certified yet`;

/** These states show even if they fill only a part of a cell: a bar must not hide a gap. */
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
