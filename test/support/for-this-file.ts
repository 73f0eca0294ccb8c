import { afterAll } from 'vitest';

/** What is opened for a whole test file, at its top: closed when the file has ended. */
export async function forThisFile<T extends { close(): unknown }>(opening: T | Promise<T>): Promise<T> {
  const opened = await opening;
  afterAll(async () => void (await opened.close()));
  return opened;
}
