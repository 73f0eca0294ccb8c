import Bottleneck from 'bottleneck';

/** Lets one through at a time, in the order in which they came. */
export interface Door {
  pass(work: () => Promise<void>): Promise<void>;
}

/**
 * Bottleneck remembers when the last one passed, by the clock on the wall, and lets nobody pass before that moment: once the clock is set
 * back by an hour, nobody for an hour. Our doors keep no gaps (the slots do), so there is nothing that it would have to remember.
 */
export function createDoor(): Door {
  const limiter = new Bottleneck({ maxConcurrent: 1 });
  const { _store: memory } = limiter as unknown as { _store: { _nextRequest: number } };
  const forget = (): void => {
    memory._nextRequest = 0;
  };
  return {
    pass(work) {
      forget();
      return limiter.schedule(() => work().finally(forget));
    },
  };
}
