import { afterEach, expect, it, vi } from 'vitest';
import type { Entry } from '../../src/sinks/iceberg/format/manifest.ts';
import { createManifestCache } from '../../src/sinks/iceberg/format/manifest-cache.ts';

afterEach(() => void vi.useRealTimers());

function counting(files = 1) {
  const cache = createManifestCache();
  const decoded: string[] = [];
  const read = (path: string) =>
    cache.read(path, async () => {
      decoded.push(path);
      return Array.from({ length: files }, () => ({}) as Entry);
    });
  return { cache, decoded, read };
}

it('decodes a manifest once, and again after ten minutes, by when it may be deleted', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const { decoded, read } = counting();
  for (let i = 0; i < 5; i++) {
    await read('a');
    vi.advanceTimersByTime(2 * 60_000 - 1);
  }
  expect(decoded).toEqual(['a']);
  vi.advanceTimersByTime(5);
  await read('a');
  expect(decoded).toEqual(['a', 'a']);
});

it('keeps at most 300 files, those of the manifests used last', async () => {
  const { decoded, read } = counting(90);
  for (const path of ['a', 'b', 'c', 'a', 'd']) await read(path);
  for (const path of ['a', 'd', 'c']) await read(path);
  expect(decoded).toEqual(['a', 'b', 'c', 'd']);
  await read('b');
  expect(decoded).toEqual(['a', 'b', 'c', 'd', 'b']);
  const large = counting(301);
  for (const path of ['a', 'a']) await large.read(path);
  expect(large.decoded).toEqual(['a', 'a']);
});

it('keeps nothing of an unreadable manifest', async () => {
  const { cache, read, decoded } = counting();
  await expect(cache.read('a', () => Promise.reject(new Error('gone')))).rejects.toThrow('gone');
  expect(await read('a')).toHaveLength(1);
  expect(decoded).toEqual(['a']);
});
