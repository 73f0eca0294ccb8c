import { describe, expect, it } from 'vitest';
import type { Sample } from '../../src/extract/probe.ts';
import type { Window } from '../../src/model/window.ts';
import { createMeter, estimateRows } from '../../src/sync/estimate.ts';

const DAY = 86_400_000;
const MONTH = { start: 0, end: 30 * DAY };
const PAGE = 1000;

/** Four quiet weeks, then a campaign: 580 rows, and 20,000 on the last day. */
const TIMES = [
  ...Array.from({ length: 580 }, (_, i) => i * (DAY / 20)),
  ...Array.from({ length: 20_000 }, (_, i) => 29 * DAY + i * (DAY / 20_000)),
];
const within = ({ start, end }: Window): number[] => TIMES.filter((at) => at >= start && at < end);

/** What a page shows of a window's start. */
function look(window: Window): Sample {
  const page = within(window).slice(0, PAGE);
  const [oldest = 0, newest = 0] = [page[0], page.at(-1)];
  const isFull = page.length === PAGE;
  const half = page.slice(page.length >> 1);
  const density = isFull ? page.length / (newest - oldest) : page.length / (window.end - window.start);
  return {
    ...{ rows: page.length, density, isFull, newest: page.at(-1), serverNow: undefined, tookMs: 1 },
    newestDensity: isFull ? half.length / (newest - (half[0] ?? 0)) : density,
  };
}

/** The windows that a chain reads, a page each. */
function pages(window: Window): Array<Window & { rows: number }> {
  const read: Array<Window & { rows: number }> = [];
  for (let { start } = window; start < window.end; ) {
    const times = within({ start, end: window.end });
    const end = times[PAGE] ?? window.end;
    read.push({ start, end, rows: Math.min(PAGE, times.length) });
    start = end;
  }
  return read;
}

const estimate = () => estimateRows([MONTH], look(MONTH), MONTH.start, async (window) => look(window));

describe('the estimated rows of a range', () => {
  it('come from a few samples that detect a burst at its end; the parts add up to the range', async () => {
    const { parts, probes } = await estimate();
    expect(probes).toBeLessThanOrEqual(5);
    const inOrder = [...parts].sort((a, b) => a.start - b.start);
    expect(inOrder.map(({ start }) => start)).toEqual([MONTH.start, ...inOrder.slice(0, -1).map(({ end }) => end)]);
    expect(inOrder.at(-1)?.end).toBe(MONTH.end);
    const rows = parts.reduce((sum, part) => sum + part.rows, 0);
    expect(rows / TIMES.length).toBeGreaterThan(0.8);
    expect(rows / TIMES.length).toBeLessThan(1.25);
  });
});

describe('the estimated progress', () => {
  const run = (estimates: Parameters<typeof createMeter>[1]): Array<{ done: number; ofRows: number }> => {
    const meter = createMeter([MONTH], estimates);
    let rows = 0;
    return pages(MONTH).map((page) => {
      rows += page.rows;
      return { done: meter(page, page.rows), ofRows: rows / TIMES.length };
    });
  };

  it('follows estimated rows, not days', async () => {
    const steps = run((await estimate()).parts);
    expect(steps[0]?.ofRows).toBeLessThan(0.06);
    for (const { done, ofRows } of steps) expect(Math.abs(done - ofRows)).toBeLessThan(0.15);
    expect(steps.at(-1)?.done).toBe(1);
  });

  it('follows time without an estimate, and corrects a wrong one on the way', () => {
    expect(run([])[0]?.done).toBeGreaterThan(0.95);
    const halved = run([{ ...MONTH, start: 29 * DAY, rows: 10_000 }]);
    expect(halved[10]?.done).toBeGreaterThan(0.4);
    expect(halved.at(-1)?.done).toBe(1);
  });

  it('is above 0 without rows, and complete for an empty range', () => {
    const empty = createMeter([MONTH], [{ ...MONTH, rows: 0 }]);
    expect(empty({ start: 0, end: 15 * DAY }, 0)).toBeCloseTo(0.5);
    expect(empty({ start: 15 * DAY, end: 30 * DAY }, 0)).toBe(1);
  });
});
