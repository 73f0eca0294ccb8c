const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz';

/** All generated data derives from one seed, so that a failing test can be repeated on the same data. */
export function createRandom(seed: number) {
  let state = seed >>> 0;
  // mulberry32: small, fast, and random enough for test data.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const at = <T>(items: readonly T[], index: number): T => {
    const item = items[index];
    if (item === undefined) throw new RangeError('pick from an empty list');
    return item;
  };
  const int = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  return {
    next,
    int,
    chance: (share: number): boolean => next() < share,
    pick: <T>(items: readonly T[]): T => at(items, Math.floor(next() * items.length)),
    /** Like pick, but the first items come far more often, as real traffic does. */
    pickSkewed: <T>(items: readonly T[]): T => at(items, Math.floor(next() ** 2 * items.length)),
    id(prefix: string, length = 16): string {
      // Joined, not concatenated: a string built by += keeps all its pieces in memory, and there are many thousand ids.
      const letters = Array.from({ length }, () => LETTERS[Math.floor(next() * LETTERS.length)]);
      return prefix + letters.join('');
    },
  };
}

export type Random = ReturnType<typeof createRandom>;

/** A number in [0, 1) derived from a text, so that a trait always chooses the same rows. */
export function shareOf(text: string, salt: string): number {
  let hash = 0x811c9dc5;
  for (const part of [salt, text]) {
    for (let i = 0; i < part.length; i++) hash = Math.imul(hash ^ part.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 4_294_967_296;
}
