import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { crc32 } from 'node:zlib';
import S3rver, { type Stored } from 's3rver';
import { listening } from './front.ts';

export type S3Server = Awaited<ReturnType<typeof startS3>>;

/**
 * A local S3 server: s3rver, for objects, signatures and multipart uploads, behind a proxy that adds what s3rver lacks
 * and the sinks need: If-Match and If-None-Match of GET, PUT, DELETE and multipart completion, checksums, and
 * the list of unfinished uploads.
 */
export async function startS3(bucket = 'lake') {
  const directory = await mkdtemp(join(tmpdir(), 'tributary-s3-'));
  const storage = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory,
    configureBuckets: [{ name: bucket }],
  });
  storeWhole(storage.store);
  const { port } = (await storage.run()) as AddressInfo;
  const etags = new Map<string, string>();
  const touched = new Set<string>();
  const uploads = new Map<string, { key: string; begun: Date }>();
  /** One at a time, so that a condition holds until its request is done. */
  let turn: Promise<unknown> = Promise.resolve();

  const server = createServer((incoming, response) => {
    gate.requests.push(`${incoming.method} ${incoming.url}`);
    gate.onRequest(incoming, response);
    if (response.writableEnded || response.destroyed) return;
    const take = (): void => {
      turn = turn.then(() => handle(incoming, response)).catch(() => response.destroy());
    };
    gate.hold(incoming).then(take, () => response.destroy());
  });
  const url = `http://127.0.0.1:${await listening(server)}`;

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(incoming.url ?? '/', url);
    const key = decodeURIComponent(pathname);
    const body = Buffer.concat(await incoming.toArray());
    if (gate.bend && body.length > 0) body[0] = (body[0] ?? 0) ^ 1;
    const isList = incoming.method === 'GET' && searchParams.has('uploads');
    if (isList) return answer(response, 200, uploadsXml(searchParams));
    const isPart = searchParams.has('partNumber');
    const isEnd = incoming.method === 'POST' && searchParams.has('uploadId');
    const isConditional = !isPart && (incoming.method !== 'POST' || isEnd);
    const etag = touched.has(key) ? '"another"' : etags.get(key);
    // As Amazon: a missing object does not match any version.
    if (isConditional && incoming.headers['if-match'] !== undefined && etag === undefined)
      return answer(response, 404, errorXml('NoSuchKey', 'The specified key does not exist.'));
    if (isConditional && !holds(incoming.headers, etag)) {
      return answer(response, 412, errorXml('PreconditionFailed', 'At least one of the preconditions did not hold'));
    }
    if (!isWhole(incoming.headers['x-amz-checksum-crc32'], body)) {
      return answer(response, 400, errorXml('BadDigest', 'The CRC32 you specified did not match'));
    }
    const passed = request({
      port,
      host: '127.0.0.1',
      method: incoming.method,
      path: incoming.url,
      headers: incoming.headers,
    });
    passed.end(body);
    const [stored] = (await once(passed, 'response')) as [IncomingMessage];
    const content = Buffer.concat(await stored.toArray());
    const isDone = (stored.statusCode ?? 500) < 300;
    if (isDone && incoming.method === 'PUT' && !isPart) etags.set(key, String(stored.headers.etag));
    if (isDone && isEnd)
      etags.set(key, /<ETag>(.*?)<\/ETag>/.exec(content.toString())?.[1]?.replaceAll('&quot;', '"') ?? '');
    if (isDone && incoming.method === 'DELETE' && !searchParams.has('uploadId')) etags.delete(key);
    if (isDone && incoming.method === 'POST' && searchParams.has('uploads')) {
      const id = /<UploadId>(.*?)<\/UploadId>/.exec(content.toString())?.[1] ?? '';
      uploads.set(id, { key: key.slice(bucket.length + 2), begun: new Date() });
    }
    if (searchParams.has('uploadId') && (isEnd || incoming.method === 'DELETE'))
      uploads.delete(searchParams.get('uploadId') ?? '');
    // s3rver cannot abort an upload; forgetting it is enough for a test.
    const isAbort = incoming.method === 'DELETE' && searchParams.has('uploadId');
    if (isAbort) return answer(response, 204, '');
    gate.onAnswer(incoming, response);
    if (response.destroyed) return;
    response.writeHead(stored.statusCode ?? 500, stored.headers);
    response.end(content);
  }

  function uploadsXml(asked: URLSearchParams): string {
    const prefix = asked.get('prefix') ?? '';
    const isAsked = (key: string): boolean => (gate.listsWholeKeysOnly ? key === prefix : key.startsWith(prefix));
    const all = [...uploads].filter(([, { key }]) => isAsked(key)).sort(([a], [b]) => (a < b ? -1 : 1));
    const marker = asked.get('upload-id-marker') ?? '';
    const after = all.filter(([id]) => id > marker);
    const page = after.slice(0, gate.uploadsAtOnce);
    const [lastId = '', last] = page.at(-1) ?? [];
    const next =
      page.length < after.length
        ? `<IsTruncated>true</IsTruncated><NextKeyMarker>${last?.key}</NextKeyMarker><NextUploadIdMarker>${lastId}</NextUploadIdMarker>`
        : '<IsTruncated>false</IsTruncated>';
    const items = page.map(
      ([id, { key, begun }]) =>
        `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${begun.toISOString()}</Initiated></Upload>`,
    );
    return `<?xml version="1.0"?><ListMultipartUploadsResult>${next}${items.join('')}</ListMultipartUploadsResult>`;
  }

  const gate = {
    url,
    bucket,
    /** The environment variables that the SDK reads. */
    environment: {
      AWS_ENDPOINT_URL_S3: url,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'S3RVER',
      AWS_SECRET_ACCESS_KEY: 'S3RVER',
    },
    /** Every request, as `PUT /bucket/key`. */
    requests: [] as string[],
    /** Keys of unfinished uploads. */
    uploads: () => [...uploads.values()].map(({ key }) => key),
    /** Called before a request is forwarded; may answer or destroy it. */
    onRequest: (_request: IncomingMessage, _response: ServerResponse): void => {},
    /** Delays a request; others continue. */
    hold: async (_request: IncomingMessage): Promise<void> => {},
    /** Called after the operation, before its answer. */
    onAnswer: (_request: IncomingMessage, _response: ServerResponse): void => {},
    /** Corrupts bytes on their way to the storage. */
    bend: false,
    /** Unfinished uploads on a page of their list. */
    uploadsAtOnce: 1000,
    /** As MinIO: lists unfinished uploads only by their complete key. */
    listsWholeKeysOnly: false,
    /** Simulates an abandoned upload. */
    leaveUpload: (key: string, begun: Date) => void uploads.set(`left-${uploads.size}-${key}`, { key, begun }),
    /** Simulates a replacement of an object. */
    touch: (key: string) => void touched.add(`/${bucket}/${key}`),
    untouch: () => touched.clear(),
    async close() {
      server.closeAllConnections();
      server.close();
      await storage.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
  return gate;
}

/** s3rver answers after the last byte but before the file is flushed: an immediate read could find it short or empty. */
function storeWhole(store: S3rver['store']): void {
  const keep = async (path: string, content: AsyncIterable<Buffer>): Promise<Stored> => {
    const bytes = Buffer.concat(await Readable.from(content).toArray());
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, bytes);
    return { size: bytes.length, md5: createHash('md5').update(bytes).digest('hex') };
  };
  store.putObject = async ({ bucket, key, content, metadata }) => {
    const stored = await keep(store.getResourcePath(bucket, key, 'object'), content);
    await store.putMetadata(bucket, key, metadata, stored.md5);
    return stored;
  };
  store.putPart = (bucket, id, part, content) =>
    keep(join(store.getResourcePath(bucket, undefined, 'uploads'), id, String(part)), content);
}

function holds(headers: IncomingMessage['headers'], etag: string | undefined): boolean {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers;
  if (match !== undefined && match !== etag) return false;
  return noneMatch === undefined || (noneMatch === '*' ? etag === undefined : noneMatch !== etag);
}

function isWhole(given: string | string[] | undefined, body: Buffer): boolean {
  if (given === undefined) return true;
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(body));
  return sum.toString('base64') === given;
}

function answer(response: ServerResponse, status: number, xml: string): void {
  response.writeHead(status, { 'content-type': 'application/xml' });
  response.end(xml);
}

const errorXml = (code: string, message: string): string =>
  `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;
