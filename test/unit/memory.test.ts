import { expect, it } from 'vitest';
import { createMemory, memoryOf } from '../../src/model/memory.ts';

it('lets in what there is room for, in order, and what is larger than everything alone', async () => {
  const memory = createMemory(100);
  const said: string[] = [];
  const open = new Map<string, () => void>();
  const work = (name: string, bytes: number) =>
    memory.hold(bytes, () => {
      said.push(name);
      return new Promise<void>((resolve) => open.set(name, resolve));
    });
  const all = [work('a', 60), work('b', 40), work('giant', 500), work('c', 10)];
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  await settle();
  expect(said).toEqual(['a', 'b']);
  open.get('a')?.();
  await settle();
  // The small one does not pass the large one, which would wait for ever.
  expect(said).toEqual(['a', 'b']);
  open.get('b')?.();
  await settle();
  expect(said).toEqual(['a', 'b', 'giant']);
  open.get('giant')?.();
  await settle();
  expect(said).toEqual(['a', 'b', 'giant', 'c']);
  open.get('c')?.();
  await Promise.all(all);
});

it('gives back what failed work held', async () => {
  const memory = createMemory(10);
  await expect(memory.hold(10, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await memory.hold(10, async () => 'next')).toBe('next');
});

it('is a quarter of the limit, and 256 MB at most', () => {
  expect([memoryOf(512 * 2 ** 20), memoryOf(2 ** 40), memoryOf(undefined)]).toEqual([2 ** 27, 2 ** 28, 2 ** 28]);
});
