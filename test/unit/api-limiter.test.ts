import { setTimeout as delay, setImmediate as immediately } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Budget, createBudget, gapOf } from '../../src/api/budget.ts';
import { createLimiter, type Lane } from '../../src/api/limiter.ts';
import { Cancelled, ConfigError, RetryLater, StopStream } from '../../src/model/errors.ts';

/** The most starts in any sliding interval of the given length. */
const densest = (starts: readonly number[], ms: number): number =>
  Math.max(...starts.map((from) => starts.filter((start) => start >= from && start < from + ms).length));

describe('the limiter', () => {
  it('sends no more requests in a sliding second than the budget, and uses most of it', async () => {
    const limiter = createLimiter({ requestsPerSecond: 20 });
    const starts: number[] = [];
    const one = () =>
      limiter.run('fresh', async () => {
        starts.push(performance.now());
        await delay(80);
      });
    const [, plainMs] = await Promise.all([Promise.all(Array.from({ length: 40 }, one)), inARow(40, gapOf(20))]);
    expect(densest(starts, 1000)).toBeLessThanOrEqual(20);
    expect(densest(starts, 100)).toBeLessThanOrEqual(3);
    const { requests, share, activeSeconds, pauses } = limiter.usage();
    expect({ requests, pauses }).toEqual({ requests: 40, pauses: 0 });
    expect(activeSeconds).toBeGreaterThan(1.9);
    // On a busy machine every timer fires late; a plain series of pauses measures by how much.
    expect((activeSeconds * 1000) / plainMs).toBeLessThan(1.8);
    expect(share).toBeCloseTo(40 / (20 * activeSeconds));
  });

  it('keeps the interval when the process is busy, where planned starts would bunch up', async () => {
    const limiter = createLimiter({ requestsPerSecond: 20 });
    const starts: number[] = [];
    const one = () =>
      limiter.run('fresh', async () => {
        starts.push(performance.now());
        if (starts.length % 4 === 0) await delay(40).then(() => busy(70));
      });
    await Promise.all(Array.from({ length: 24 }, one));
    const gaps = starts.slice(1).map((start, i) => start - (starts[i] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThan(20);
    expect(densest(starts, 800)).toBeLessThanOrEqual(16);
  });

  it('serves fresh before repair before backfill, whatever their order of arrival', async () => {
    const budget = createBudget(100);
    const limiter = createLimiter({ budget, requestsPerSecond: 100 });
    void budget.tooMany(800);
    const order: Lane[] = [];
    const go = (lane: Lane) => limiter.run(lane, async () => void order.push(lane));
    const lanes: Lane[] = ['backfill', 'backfill', 'backfill', 'repair', 'fresh', 'repair', 'fresh'];
    await Promise.all(lanes.map(go));
    // Three others have passed the first backfill request, so it is next.
    expect(order).toEqual(['fresh', 'fresh', 'repair', 'backfill', 'repair', 'backfill', 'backfill']);
  });

  it('rejects waiting tasks when the budget is unavailable, and sends nothing without a slot', async () => {
    const budget = { ...createBudget(100), take: () => Promise.reject(new ConfigError('no such database')) };
    const limiter = createLimiter({ requestsPerSecond: 100, budget });
    let ran = 0;
    await expect(limiter.run('fresh', async () => void ran++)).rejects.toThrow('no such database');
    expect(ran).toBe(0);
  });

  it('bounds concurrent requests', async () => {
    const limiter = createLimiter({ requestsPerSecond: 500, maxConcurrent: 3 });
    let now = 0;
    let most = 0;
    const one = () =>
      limiter.run('fresh', async () => {
        most = Math.max(most, ++now);
        await delay(30);
        now--;
      });
    await Promise.all(Array.from({ length: 15 }, one));
    expect(most).toBe(3);
  });

  it('is not paused by other errors', async () => {
    const limiter = createLimiter({ requestsPerSecond: 100 });
    const failures = [new RetryLater('503'), new StopStream('401'), new TypeError('bug')];
    for (const error of failures) {
      await expect(limiter.run('fresh', () => Promise.reject(error))).rejects.toBe(error);
    }
    expect(limiter.usage().pauses).toBe(0);
  });

  it('releases aborted tasks immediately, without using a slot', async () => {
    const budget = createBudget(5);
    let slots = 0;
    const counting: Budget = {
      ...budget,
      async take(lane, isCold) {
        const turn = await budget.take(lane, isCold);
        if ('at' in turn) slots++;
        return turn;
      },
    };
    const limiter = createLimiter({ requestsPerSecond: 5, budget: counting });
    const controller = new AbortController();
    await limiter.run('fresh', async () => {});
    let ran = 0;
    let hasSurvived = false;
    const doomed = Array.from({ length: 20 }, () => limiter.run('fresh', async () => void ran++, controller.signal));
    const survivor = limiter.run('backfill', async () => {
      hasSurvived = true;
    });
    await immediately();
    controller.abort(new Error('SIGTERM'));
    const outcomes = await Promise.allSettled(doomed);
    expect(hasSurvived).toBe(false);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: expect.any(Cancelled) });
    await survivor;
    expect(ran).toBe(0);
    expect(limiter.usage().requests).toBe(2);
    // One for each task that ran, and perhaps one that a busy machine delayed.
    expect(slots).toBeLessThanOrEqual(3);
    await expect(limiter.run('fresh', async () => {}, controller.signal)).rejects.toBeInstanceOf(Cancelled);
  });

  it('releases an aborted task that waits in a pause or for concurrency', async () => {
    const budget = createBudget(100);
    const limiter = createLimiter({ budget, requestsPerSecond: 100, maxConcurrent: 1 });
    await limiter.run('fresh', async () => {});
    let finish = (): void => {};
    const holding = limiter.run('fresh', () => {
      return new Promise<void>((resolve) => {
        finish = resolve;
      });
    });
    await delay(40);
    const seat = limiter.run('fresh', async () => {}, AbortSignal.timeout(60));
    await expect(seat).rejects.toBeInstanceOf(Cancelled);
    finish();
    await holding;
    void budget.tooMany(60_000);
    await expect(limiter.run('fresh', async () => {}, AbortSignal.timeout(60))).rejects.toBeInstanceOf(Cancelled);
  });

  it('rejects all tasks after it is closed', async () => {
    const limiter = createLimiter({ requestsPerSecond: 1 });
    let begin = (): void => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const first = limiter.run('fresh', () => {
      begin();
      return delay(50, 'done');
    });
    await begun;
    const waiting = limiter.run('fresh', async () => {});
    const refused = expect(waiting).rejects.toBeInstanceOf(Cancelled);
    limiter.close();
    await refused;
    await expect(limiter.run('fresh', async () => {})).rejects.toBeInstanceOf(Cancelled);
    expect(await first).toBe('done');
  });

  it('causes no warning about listeners when many tasks share a signal', async () => {
    const warnings: Error[] = [];
    const listener = (warning: Error): void => void warnings.push(warning);
    process.on('warning', listener);
    const limiter = createLimiter({ requestsPerSecond: 1000 });
    const { signal } = new AbortController();
    await Promise.all(Array.from({ length: 30 }, () => limiter.run('fresh', async () => {}, signal)));
    await delay(10);
    process.off('warning', listener);
    expect(warnings).toEqual([]);
  });
});

/** The duration of so many pauses in series. */
async function inARow(count: number, ms: number): Promise<number> {
  const began = performance.now();
  for (let i = 0; i < count; i++) await delay(ms);
  return performance.now() - began;
}

function busy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
