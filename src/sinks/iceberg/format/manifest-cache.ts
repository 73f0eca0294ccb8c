import { MINUTE_MS } from '../../../model/window.ts';
import type { Entry } from './manifest.ts';

/** An LRU cache. Manifests never change, and decoding those of the current day takes most of a poll. */
export type ManifestCache = ReturnType<typeof createManifestCache>;

/** About 15 KB of memory each: an entry has metrics of every column. */
const MOST_FILES = 300;
const KEPT_MS = 10 * MINUTE_MS;

export function createManifestCache() {
  const kept = new Map<string, { entries: readonly Entry[]; until: number }>();
  let files = 0;

  const drop = (path: string): void => {
    files -= kept.get(path)?.entries.length ?? 0;
    kept.delete(path);
  };

  return {
    async read(path: string, decode: () => Promise<readonly Entry[]>): Promise<readonly Entry[]> {
      const found = kept.get(path);
      const isValid = found !== undefined && performance.now() < found.until;
      const entries = isValid ? found.entries : await decode();
      drop(path);
      kept.set(path, { entries, until: isValid ? found.until : performance.now() + KEPT_MS });
      files += entries.length;
      for (const oldest of kept.keys()) {
        if (files <= MOST_FILES) break;
        drop(oldest);
      }
      return entries;
    },
  };
}
