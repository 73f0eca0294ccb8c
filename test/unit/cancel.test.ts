import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { isDoneWithin } from '../../src/api/cancel.ts';

it('reports whether work ended in time, and passes on its error', async () => {
  expect(await isDoneWithin(10_000, Promise.resolve())).toBe(true);
  expect(await isDoneWithin(1, new Promise(() => {}))).toBe(false);
  await expect(isDoneWithin(10_000, Promise.reject(new Error('broken')))).rejects.toThrow('broken');
});

// After a lost connection nothing else may keep the process alive.
it('waits even if nothing else keeps the process alive, but no longer than the work', async () => {
  const module = JSON.stringify(new URL('../../src/api/cancel.ts', import.meta.url).href);
  const script = `
    const { isDoneWithin } = await import(${module});
    const isDone = [await isDoneWithin(50, new Promise(() => {})), await isDoneWithin(3_600_000, Promise.resolve())];
    console.log(JSON.stringify(isDone));`;
  const args = ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', script];
  expect((await promisify(execFile)(process.execPath, args)).stdout).toBe('[false,true]\n');
});
