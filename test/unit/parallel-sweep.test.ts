import { setImmediate as breathe } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UNKNOWN_PROFILE } from '../../src/extract/profile.ts';
import type { Profile, Slice } from '../../src/extract/reader.ts';
import type { Row } from '../../src/model/flatten.ts';
import { DAY_MS, gaps, type Window } from '../../src/model/window.ts';
import { sweepInParallel } from '../../src/sync/parallel-sweep.ts';
import { certified } from '../support/certified.ts';

const START = Date.UTC(2026, 0, 1);
const PAGE_ROWS = 10;
const EXACT: Profile = { ...UNKNOWN_PROFILE, isStartSeen: true, tickMs: 1, pageRows: PAGE_ROWS };
const never = new AbortController().signal;
const share = (start: number, end: number) => ({ window: { start, end }, lane: 'fresh' as const });

/** A stream with rows at these instants, read by chains of pages; it records requests and results. */
function createStream(times: readonly number[]) {
  const taken: Window[] = [];
  const begun: Window[] = [];
  let [underWay, most, pages] = [0, 0, 0];
  async function* sweep({ start, end }: Window, _: unknown, signal: AbortSignal): AsyncGenerator<Slice, void> {
    begun.push({ start, end });
    most = Math.max(most, ++underWay);
    try {
      for (let at = start; at < end; ) {
        await breathe();
        signal.throwIfAborted();
        pages += 1;
        const rows = times.filter((time) => time >= at).slice(0, PAGE_ROWS);
        const to = rows.length < PAGE_ROWS ? end : Math.min(end, (rows.at(-1) ?? end) + 1);
        const inside = rows.filter((time) => time < to).map((time) => ({ at: time }) as Row);
        const window = { start: at, end: to };
        yield { window, certified: certified(window), rows: inside, rejected: [] };
        at = to;
      }
    } finally {
      underWay -= 1;
    }
  }
  return {
    sweep,
    take: async ({ window }: Slice) => void (window && taken.push(window)),
    taken,
    begun,
    pages: () => pages,
    most: () => most,
  };
}

const evenly = (count: number, { start, end }: Window): number[] =>
  Array.from({ length: count }, (_, i) => start + Math.floor(((end - start) * i) / count));

describe('a parallel sweep', () => {
  test('gives the later half to a free chain while it is large enough', async () => {
    const window = { start: START, end: START + 10 * DAY_MS };
    const stream = createStream(evenly(2000, window));
    await sweepInParallel([{ window, lane: 'fresh' }], {
      chainsAtOnce: () => 4,
      profile: () => EXACT,
      signal: never,
      ...stream,
    });
    expect(gaps(stream.taken, window)).toEqual([]);
    expect(stream.most()).toBe(4);
    // Two hundred pages, and the cost of the boundaries.
    expect(stream.pages()).toBeLessThanOrEqual(1.05 * 200 + 4);
    expect(stream.begun.length).toBeGreaterThanOrEqual(4);
  });

  test('uses one chain if the rows fit a few pages, or if only one is allowed', async () => {
    const window = { start: START, end: START + 10 * DAY_MS };
    for (const [rows, chainsAtOnce] of [
      [80, 8],
      [2000, 1],
    ] as const) {
      const stream = createStream(evenly(rows, window));
      await sweepInParallel([{ window, lane: 'fresh' }], {
        chainsAtOnce: () => chainsAtOnce,
        profile: () => EXACT,
        signal: never,
        ...stream,
      });
      expect(stream.begun).toEqual([window]);
      expect(gaps(stream.taken, window)).toEqual([]);
    }
  });

  test.each([
    ['hour', 3],
    ['day', 1],
  ] as const)(
    'on a server that widens to the %s, at most %i chains, which begin at full hours',
    async (granularity, most) => {
      const window = { start: START + 3_600_001, end: START + 9 * DAY_MS };
      const stream = createStream(evenly(2000, window));
      const profile = (): Profile => ({ ...EXACT, granularity });
      await sweepInParallel([{ window, lane: 'fresh' }], { chainsAtOnce: () => 3, profile, signal: never, ...stream });
      expect(stream.begun.length > 1).toBe(most > 1);
      expect(stream.most()).toBeLessThanOrEqual(most);
      for (const { start } of stream.begun.slice(1)) expect(start % 3_600_000).toBe(0);
      expect(gaps(stream.taken, window)).toEqual([]);
    },
  );

  test('covers every window, for any distribution of rows, at a bounded cost', async () => {
    const times = fc.array(fc.integer({ min: START, max: START + 40 * DAY_MS }), { maxLength: 3000, size: 'max' });
    await fc.assert(
      fc.asyncProperty(times, fc.integer({ min: 1, max: 8 }), async (unsorted, chainsAtOnce) => {
        const stream = createStream([...new Set(unsorted)].sort((a, b) => a - b));
        const shares = [share(START, START + 5 * DAY_MS), share(START + 7 * DAY_MS, START + 40 * DAY_MS)];
        await sweepInParallel(shares, {
          chainsAtOnce: () => chainsAtOnce,
          profile: () => EXACT,
          signal: never,
          ...stream,
        });
        for (const { window } of shares) expect(gaps(stream.taken, window)).toEqual([]);
        expect(stream.most()).toBeLessThanOrEqual(chainsAtOnce);
        // Two windows, their halves, and one page more for each.
        expect(stream.pages()).toBeLessThanOrEqual((unsorted.length / PAGE_ROWS) * 1.05 + 2 * (2 + chainsAtOnce));
      }),
      { numRuns: 60 },
    );
  });

  test('stops at the first failure, and reports that one', async () => {
    const window = { start: START, end: START + 10 * DAY_MS };
    const stream = createStream(evenly(4000, window));
    const take = async (): Promise<void> => {
      if (stream.pages() === 50) throw new Error('the sink is full');
    };
    await expect(
      sweepInParallel([{ window, lane: 'fresh' }], {
        chainsAtOnce: () => 4,
        profile: () => EXACT,
        signal: never,
        ...stream,
        take,
      }),
    ).rejects.toThrow('the sink is full');
    expect(stream.pages()).toBeLessThan(60);
  });
});
