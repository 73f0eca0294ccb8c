import { expect, it, vi } from 'vitest';
import { RetryLater } from '../../src/model/errors.ts';
import { onDisk } from '../../src/model/io-errors.ts';

it('translates errors of opened resources, and does not walk through buffers byte by byte', async () => {
  const full = Object.assign(new Error('no room'), { code: 'ENOSPC' });
  const file = { read: async () => Buffer.alloc(10), write: () => Promise.reject(full) };
  const disk = onDisk('the lake', { open: async () => file });
  const open = await disk.open();
  await expect(open.write()).rejects.toThrow(RetryLater);
  const values = vi.spyOn(Object, 'values');
  await open.read();
  expect(values.mock.calls.filter(([value]) => ArrayBuffer.isView(value))).toEqual([]);
});
