import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import { Cancelled } from '../../model/errors.ts';
import type { ByteTarget } from '../../sinks/export/row-file.ts';

/** Whoever reads nothing for so long has forgotten about it. */
const PATIENCE_MS = 30_000;

export interface Download<T> {
  body: Readable;
  /** What `write` came to. */
  done: Promise<T>;
}

/**
 * What is written comes out at the other end, no faster than it is read there. Settles with the first byte: what fails before it
 * is an answer like any other, and what fails after it breaks the connection off, so that half a file is not taken for a whole one.
 */
export async function createDownload<T>(
  write: (target: ByteTarget) => Promise<T>,
  signal: AbortSignal,
  patienceMs = PATIENCE_MS,
): Promise<Download<T>> {
  const body = new PassThrough();
  // What went wrong is told by whoever waits for `done`, or by the connection that breaks off.
  body.on('error', () => {});
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const done = write({
    async write(bytes) {
      begin();
      if (!body.write(bytes)) await drained(body, signal, patienceMs);
    },
    finish: async () => void body.end(),
    abandon: async () => {},
  });
  done.catch((error: Error) => body.destroy(error));
  await Promise.race([begun, done]);
  return { body, done };
}

async function drained(body: PassThrough, signal: AbortSignal, patienceMs: number): Promise<void> {
  const late = setTimeout(() => body.destroy(new Error('nobody reads')), patienceMs);
  try {
    await once(body, 'drain', { signal });
  } catch (cause) {
    throw new Cancelled('whoever wanted this file has gone, or stopped reading', { cause });
  } finally {
    clearTimeout(late);
  }
}
