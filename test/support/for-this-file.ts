import { afterAll } from 'vitest';

/** Opens a resource for a test file, and closes it after the last test. */
export async function forThisFile<T extends { close(): unknown }>(opening: T | Promise<T>): Promise<T> {
  const opened = await opening;
  afterAll(async () => void (await opened.close()));
  return opened;
}
