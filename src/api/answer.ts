import { isAscii } from 'node:buffer';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { promisify } from 'node:util';
import { brotliDecompress, constants, gunzip } from 'node:zlib';
import type { Deadline } from './cancel.ts';

/**
 * Sends one GET over Node's own HTTP with its shared agents, which keep connections open. Not fetch: its streams hand a page over in pieces
 * of 16 KB, each with a promise of its own, and cost more than parsing the page. Redirects are not followed.
 */
export function send(url: URL, headers: Record<string, string>, deadline: Deadline): Promise<IncomingMessage> {
  const isTls = url.protocol === 'https:';
  const asked = { headers: { ...headers, 'accept-encoding': ENCODINGS }, signal: deadline.signal };
  return new Promise((resolve, reject) => {
    const request = (isTls ? httpsRequest : httpRequest)(url, asked, resolve);
    request.on('error', reject);
    request.on('socket', (socket) => {
      if (socket.connecting) socket.once(isTls ? 'secureConnect' : 'connect', deadline.onConnect);
      else deadline.onConnect();
    });
    request.end();
  });
}

/**
 * Supported content encodings. Brotli decompresses in two thirds of gzip's time; zstd, from Node 22 on, in the same. With the flush option
 * a truncated body yields the part that came: its JSON shows whether that is a whole page.
 */
const PACKINGS = new Map([
  ['br', { unpack: promisify(brotliDecompress), finishFlush: constants.BROTLI_OPERATION_FLUSH }],
  ['gzip', { unpack: promisify(gunzip), finishFlush: constants.Z_SYNC_FLUSH }],
]);
const ENCODINGS = [...PACKINGS.keys()].join(', ');

/** The encodings of an answer, outermost first. */
const packingsOf = ({ headers }: IncomingMessage) =>
  (headers['content-encoding'] ?? '')
    .toLowerCase()
    .split(/\s*,\s*/)
    .reverse()
    .flatMap((name) => PACKINGS.get(name) ?? []);

/** How much larger a page of events usually is than its compressed form. */
const PACKED = 16;
const SMALLEST_PIECE = 16 * 1024;

interface Body {
  /** After decompression, as far as it was read. */
  content: Buffer;
  /** The body was larger than allowed; reading stopped there. */
  cut: boolean;
}

/** Callback with the bytes received so far and their size when decompressed; reading continues when its promise resolves. */
export type Progress = (received: number, unpacked: number) => Promise<void>;

interface Limits {
  maxBytes: number;
  /** The expected decompressed size, used as the chunk size so that the output is one piece if memory allows. */
  likelyBytes: number;
}

/**
 * Reads a body, up to a limit on both its compressed and its decompressed size: a few kilobytes can decompress to gigabytes, and an
 * announced length proves nothing. Another thread decompresses.
 */
export async function readBody(
  message: IncomingMessage,
  { maxBytes, likelyBytes }: Limits,
  progress: Progress,
): Promise<Body> {
  const chunks: Buffer[] = [];
  const packings = packingsOf(message);
  const growth = packings.length > 0 ? PACKED : 1;
  let received = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    received += chunk.length;
    // Leaving the loop closes the connection, so that the rest is not sent.
    if (received > maxBytes) return { content: Buffer.concat(growth > 1 ? [] : chunks), cut: true };
    chunks.push(chunk);
    await progress(received, Math.min(received * growth, maxBytes));
  }
  let body = Buffer.concat(chunks);
  const chunkSize = Math.max(SMALLEST_PIECE, Math.min(likelyBytes, maxBytes));
  try {
    for (const { unpack, finishFlush } of packings) {
      body = await unpack(body, { chunkSize, maxOutputLength: maxBytes, finishFlush });
      await progress(received, body.length);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw error;
    return { content: Buffer.alloc(0), cut: true };
  }
  return { content: body, cut: false };
}

/** JSON.parse refuses the byte order mark that some services send. */
const BYTE_ORDER_MARK = '\ufeff';
const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true });
/** Below this size, looking for a plain ASCII half costs more than it saves. */
const PIECE_BYTES = 4096;

export function decode(bytes: Buffer): string {
  const text = decodePiece(bytes);
  return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
}

/** Plain ASCII is copied, which is five times faster than decoding; a few accents must not slow down the whole page. */
function decodePiece(bytes: Buffer): string {
  if (isAscii(bytes)) return bytes.toString('latin1');
  if (bytes.length < PIECE_BYTES) return UTF8.decode(bytes);
  // Split between two characters. Without such a place this is not text, and is decoded as a whole.
  let middle = bytes.length >> 1;
  while (((bytes[middle] ?? 0) & 0xc0) === 0x80) middle++;
  if (middle === bytes.length) return UTF8.decode(bytes);
  return decodePiece(bytes.subarray(0, middle)) + decodePiece(bytes.subarray(middle));
}
