import { pipeline, type Readable, type Transform } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib';

/** Answers on their way: packed for those who can unpack them. */
export type Encoding = 'br' | 'gzip';

/** Below this a packet is a packet. What holds the token of a session is shorter, so that its length never tells of it. */
const LEAST = 1024;

/** Text in any of its forms. What is packed already (Parquet, pictures) would only cost time. */
const TEXT = /^(?:text\/(?!event-stream)|application\/(?:json|sql|yaml|x-ndjson|javascript|manifest\+json)|image\/svg)/;

export const isPackable = (type: string): boolean => TEXT.test(type);

/** What whoever asks can unpack, the tightest first. */
export function encodingFor(accepted: string | string[] | undefined): Encoding | undefined {
  const offers = new Map(
    String(accepted ?? '')
      .toLowerCase()
      .split(',')
      .map((offer) => {
        const [name = '', ...params] = offer.split(';').map((part) => part.trim());
        const weight = params.find((param) => param.startsWith('q='))?.slice(2);
        return [name, weight === undefined || Number(weight) > 0];
      }),
  );
  return (['br', 'gzip'] as const).find((name) => offers.get(name));
}

/** A middle way for what is packed anew for every answer: tighter takes longer than the network saves. */
const brotli = (quality: number) => ({ params: { [constants.BROTLI_PARAM_QUALITY]: quality } });
const QUICKLY = 4;

const packers: Readonly<Record<Encoding, (body: Buffer | string) => Promise<Buffer>>> = {
  br: (body) => promisify(brotliCompress)(body, brotli(QUICKLY)),
  gzip: promisify<Buffer | string, Buffer>(gzip),
};

const streams: Readonly<Record<Encoding, () => Transform>> = {
  br: () => createBrotliCompress(brotli(QUICKLY)),
  gzip: () => createGzip(),
};

/** Undefined: it stays as it is. Off the main thread, whatever its size. */
export async function pack(payload: unknown, encoding: Encoding): Promise<Buffer | Readable | undefined> {
  if (isReadable(payload)) {
    // One end learns of what becomes of the other: a reader who leaves, a source that fails.
    return pipeline(payload, streams[encoding](), () => {});
  }
  if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return undefined;
  return Buffer.byteLength(payload) < LEAST ? undefined : packers[encoding](payload);
}

const isReadable = (payload: unknown): payload is Readable =>
  typeof payload === 'object' && payload !== null && 'pipe' in payload;
