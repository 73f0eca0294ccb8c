import { randomUUID } from 'node:crypto';
import { type Finding, findingOf, ok, StopStream } from '../../../model/errors.ts';
import { createFolderStore } from './folder-store.ts';
import { readSmall, type Store, writeSmall } from './store.ts';

/** Tests the operations of a commit: writes, reads and removes a file. */
export async function checkStore(store: Store, subject: string): Promise<Finding[]> {
  const path = `_doctor-${randomUUID()}.txt`;
  try {
    await writeSmall(await store.stage(path), path);
    const file = await readSmall(store, path);
    if (file?.bytes.toString() !== path) {
      throw new StopStream(`${store.place} returned other content than was written`, {
        next: 'check what caches or changes files there',
      });
    }
    await store.remove(path, file.identity);
    return [ok(subject, `${store.place}: can write, read and remove`)];
  } catch (error) {
    return [findingOf(subject, error)];
  }
}

/** A folder, or `s3://bucket/prefix`. */
export async function openStore(
  path: string,
  { pathStyle, fileMode }: { pathStyle: boolean; fileMode: number | undefined },
): Promise<Store> {
  if (!path.startsWith('s3://')) return createFolderStore(path, { fileMode });
  // Imported on demand: the S3 client is larger than the rest of the program.
  const { createS3Store } = await import('./s3-store.ts');
  return createS3Store({ url: path, pathStyle });
}
