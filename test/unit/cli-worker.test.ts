import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { exitInTime } from '../../src/cli/commands/worker.ts';

/** A worker is gone within 25 s of SIGTERM, whatever keeps it. */

const exit = vi.spyOn(process, 'exit');
beforeEach(() => {
  vi.useFakeTimers();
  exit.mockReset().mockImplementation((() => {}) as never);
});
afterEach(() => void vi.useRealTimers());

it('leaves in time when it is told to', () => {
  const stop = new AbortController();
  exitInTime(stop.signal);
  vi.advanceTimersByTime(60_000);
  expect(exit).not.toHaveBeenCalled();
  stop.abort();
  vi.advanceTimersByTime(25_000);
  expect(exit).toHaveBeenCalledWith(0);
});

it('leaves in time when it was told to before it had begun', () => {
  exitInTime(AbortSignal.abort());
  vi.advanceTimersByTime(25_000);
  expect(exit).toHaveBeenCalledWith(0);
});
