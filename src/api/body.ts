import { isAscii } from 'node:buffer';

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

/** JSON.parse refuses the byte order mark that some put in front. */
const BYTE_ORDER_MARK = '\ufeff';
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true });
/** Below this, looking for a plain half costs more than it saves. */
const PIECE_BYTES = 4096;

function decode(chunks: readonly Uint8Array[]): string {
  const text = decodePiece(Buffer.concat(chunks));
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

/** Plain ASCII is copied, which is five times faster than decoding; an accent here and there must not spoil the whole page. */
function decodePiece(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString('latin1');
  if (bytes.length < PIECE_BYTES) return UTF8.decode(bytes);
  // Between two characters. Where no such place comes, this is no text, and is decoded as a whole.
  let middle = bytes.length >> 1;
  while (((bytes[middle] ?? 0) & 0xc0) === 0x80) middle++;
  if (middle === bytes.length) return UTF8.decode(bytes);
  return decodePiece(bytes.subarray(0, middle)) + decodePiece(bytes.subarray(middle));
}
