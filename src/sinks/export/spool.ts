import { open, rm } from 'node:fs/promises';
import { deserialize, serialize } from 'node:v8';
import type { Row } from '../../model/flatten.ts';
import { onDisk } from '../../model/io-errors.ts';

/** Rows that wait on disk, to be read again once in the order in which they came. */
export interface Spool {
  add(rows: readonly Row[]): Promise<void>;
  replay(): AsyncIterable<readonly Row[]>;
  remove(): Promise<void>;
}

export async function createSpool(path: string): Promise<Spool> {
  // It may hold personal data: nobody else may read it, and what a killed export left behind is replaced.
  const file = await open(path, 'w+', 0o600);
  const lengths: number[] = [];
  const disk = onDisk(path, {
    async add(rows: readonly Row[]) {
      const bytes = serialize(rows);
      lengths.push(bytes.length);
      await file.write(bytes);
    },
    async remove() {
      await file.close();
      await rm(path, { force: true });
    },
  });
  return {
    ...disk,
    async *replay() {
      let position = 0;
      for (const length of lengths) {
        const { buffer } = await file.read(Buffer.alloc(length), 0, length, position);
        position += length;
        yield deserialize(buffer) as Row[];
      }
    },
  };
}
