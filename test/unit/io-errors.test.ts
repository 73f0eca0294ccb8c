import { expect, it, vi } from 'vitest';
import { RetryLater } from '../../src/model/errors.ts';
import { onDisk } from '../../src/model/io-errors.ts';

it('translates the errors of what is opened, and does not look through bytes one by one', async () => {
  const full = Object.assign(new Error('no room'), { code: 'ENOSPC' });
  const file = { read: async () => Buffer.alloc(10), write: () => Promise.reject(full) };
  const disk = onDisk('the lake', { open: async () => file });
  const open = await disk.open();
  await expect(open.write()).rejects.toThrow(RetryLater);
  const values = vi.spyOn(Object, 'values');
  await open.read();
  expect(values.mock.calls.filter(([value]) => ArrayBuffer.isView(value))).toEqual([]);
});
