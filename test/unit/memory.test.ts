import { expect, it } from 'vitest';
import { createMemory, memoryOf } from '../../src/model/memory.ts';

it('admits tasks in order while there is room, and a task larger than the limit alone', async () => {
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
  // The small one does not overtake the large one, which would otherwise never run.
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

it('releases the memory of failed work', async () => {
  const memory = createMemory(10);
  await expect(memory.hold(10, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await memory.hold(10, async () => 'next')).toBe('next');
});

const settled = () => new Promise((resolve) => setImmediate(resolve));
const endless = () => new Promise<void>(() => {});

/** Work that ends on request. */
function endable(): { work(): Promise<void>; end(): void } {
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { work: () => ended, end };
}

it('waits for held memory only while work is running: nothing else releases it', async () => {
  const memory = createMemory(100);
  const said: string[] = [];
  const release = memory.keep(60);
  const { work, end } = endable();
  const first = memory.hold(50, work);
  void memory.hold(50, async () => void said.push('next'));
  await settled();
  expect([said, memory.isShort()]).toEqual([[], true]);
  end();
  await first;
  await settled();
  expect([said, memory.isShort()]).toEqual([['next'], false]);
  release();
  void memory.hold(100, endless);
  expect(memory.isShort()).toBe(false);
});

it('admits a commit, which frees memory, before a page', async () => {
  const memory = createMemory(100);
  const said: string[] = [];
  const { work, end } = endable();
  const working = memory.hold(100, work);
  const page = memory.hold(100, async () => void said.push('a page'));
  const commit = memory.hold(100, async () => void said.push('a commit'), { isWayOut: true });
  end();
  await Promise.all([working, page, commit]);
  expect(said).toEqual(['a commit', 'a page']);
});

it('a page larger than expected waits for more memory, and gets it before others start', async () => {
  const memory = createMemory(100);
  const said: string[] = [];
  const { work, end } = endable();
  const other = memory.hold(60, work);
  const page = memory.hold(40, async (held) => {
    expect(held.grow(40)).toBeUndefined();
    await held.grow(90);
    said.push('the page');
  });
  const next = memory.hold(40, async () => void said.push('next'));
  await settled();
  expect(said).toEqual([]);
  end();
  await Promise.all([other, page, next]);
  expect(said).toEqual(['the page', 'next']);
});

it('an aborted signal ends the wait', async () => {
  const memory = createMemory(10);
  void memory.hold(10, endless);
  const stop = new AbortController();
  const waiting = memory.hold(10, async () => 'done', { signal: stop.signal });
  stop.abort();
  expect(await waiting).toBe('done');
  expect(memory.isShort()).toBe(false);
});

it("is a quarter of the machine's memory limit, at most 256 MB", () => {
  expect([memoryOf(512 * 2 ** 20), memoryOf(2 ** 40), memoryOf(undefined)]).toEqual([2 ** 27, 2 ** 28, 2 ** 28]);
});
