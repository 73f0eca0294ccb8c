import { createFolderStore } from './folder-store.ts';
import type { Store } from './store.ts';

/** A folder, or `s3://bucket/prefix`. */
export async function openStore(path: string, { pathStyle }: { pathStyle: boolean }): Promise<Store> {
  if (!path.startsWith('s3://')) return createFolderStore(path);
  // Loaded only where it is needed: the client of S3 is larger than everything else together.
  const { createS3Store } = await import('./s3-store.ts');
  return createS3Store({ url: path, pathStyle });
}
