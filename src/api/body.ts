export interface Body {
  text: string;
  /** Bytes after decompression, as far as they were read. */
  bytes: number;
  /** There was more than allowed; reading stopped there. */
  cut: boolean;
}

/**
 * Reads a body as text, up to a limit that is held while reading: a few kilobytes can unpack to gigabytes, and a length
 * that was announced proves nothing. `chunkCame` hears of every piece, with the bytes so far. The signal is listened to here
 * too: a request that is aborted between its headers and its first piece can leave fetch's own reading waiting for ever.
 */
export async function readBody(
  response: Response,
  maxBytes: number,
  chunkCame: (bytes: number) => void,
  signal: AbortSignal,
): Promise<Body> {
  const reader = response.body?.getReader();
  if (!reader) return { text: '', bytes: 0, cut: false };
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  aborted.catch(() => {}); // Thrown where it is awaited; a body that was read to its end awaits it no more.
  for (;;) {
    const { done, value } = await Promise.race([reader.read(), aborted]);
    if (done || bytes + value.length > maxBytes) {
      // Cancelling closes the connection, so that the rest is neither sent nor unpacked; how that goes is of no interest.
      if (!done) reader.cancel().catch(() => {});
      return { text: decode(chunks), bytes, cut: !done };
    }
    chunks.push(value);
    bytes += value.length;
    chunkCame(bytes);
  }
}

/** TextDecoder also drops a byte order mark, which JSON.parse refuses. */
const decode = (chunks: readonly Uint8Array[]): string => new TextDecoder().decode(Buffer.concat(chunks));
