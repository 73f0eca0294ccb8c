/** Slows down whoever guesses tokens: so many wrong ones a minute from one address, and none is looked at for a while. */
export interface Throttle {
  /** Seconds to wait before the next try; 0: go ahead. */
  waitSeconds(address: string): number;
  failed(address: string): void;
}

const TRIES = 10;
const WITHIN_MS = 60_000;
/** Addresses are remembered for a minute; a flood of them forgets the oldest instead of filling the memory. */
const MOST_ADDRESSES = 10_000;

export function createThrottle(now: () => number = Date.now): Throttle {
  const failures = new Map<string, number[]>();
  const recent = (address: string): number[] =>
    (failures.get(address) ?? []).filter((at) => now() - at < WITHIN_MS).slice(-TRIES);

  return {
    waitSeconds(address) {
      const [oldest, ...rest] = recent(address);
      return oldest === undefined || rest.length < TRIES - 1 ? 0 : Math.ceil((oldest + WITHIN_MS - now()) / 1000);
    },
    failed(address) {
      const all = [...recent(address), now()];
      failures.delete(address);
      failures.set(address, all);
      const [first] = failures.keys();
      if (failures.size > MOST_ADDRESSES && first !== undefined) failures.delete(first);
    },
  };
}
