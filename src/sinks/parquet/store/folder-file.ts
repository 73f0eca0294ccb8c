import type { FileHandle } from 'node:fs/promises';
import type { OpenFile } from './store.ts';

/** A file of the local disk, read from any place. */
export async function openFile(handle: FileHandle, name: string): Promise<OpenFile> {
  const stats = await handle.stat({ bigint: true });
  return {
    name,
    size: Number(stats.size),
    identity: identityOf(stats),
    async read(start, end) {
      const bytes = Buffer.allocUnsafe(end - start);
      let done = 0;
      while (done < bytes.length) {
        const { bytesRead } = await handle.read(bytes, done, bytes.length - done, start + done);
        if (bytesRead === 0) throw new Error(`${name} ends at byte ${start + done}, before ${end}`);
        done += bytesRead;
      }
      return bytes;
    },
    close: () => handle.close(),
  };
}

/** A file that was replaced is another inode, or was written at another time. */
export const identityOf = ({ ino, mtimeNs, size }: { ino: bigint; mtimeNs: bigint; size: bigint }): string =>
  `${ino}-${mtimeNs}-${size}`;

export async function writeAt(handle: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await handle.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
  }
}
