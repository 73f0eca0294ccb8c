import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { exitInTime } from '../../src/cli/commands/worker.ts';

/** A worker exits within 25 s of SIGTERM, whatever blocks it. */

const exit = vi.spyOn(process, 'exit');
beforeEach(() => {
  vi.useFakeTimers();
  exit.mockReset().mockImplementation((() => {}) as never);
});
afterEach(() => void vi.useRealTimers());

it('exits in time after SIGTERM', () => {
  const stop = new AbortController();
  exitInTime(stop.signal);
  vi.advanceTimersByTime(60_000);
  expect(exit).not.toHaveBeenCalled();
  stop.abort();
  vi.advanceTimersByTime(25_000);
  expect(exit).toHaveBeenCalledWith(0);
});

it('exits in time after a SIGTERM that arrived before its start', () => {
  exitInTime(AbortSignal.abort());
  vi.advanceTimersByTime(25_000);
  expect(exit).toHaveBeenCalledWith(0);
});
