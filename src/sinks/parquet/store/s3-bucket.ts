import type { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { ConfigError, type Fault, RetryLater } from '../../../model/errors.ts';
import { meaningOf } from '../../../model/network-meanings.ts';

/** The one home of the S3 client. Everything else sees these few functions, and errors of the house. */
export interface Bucket {
  list(prefix: string): AsyncIterable<{ key: string; identity: string; modifiedAt: number }>;
  head(key: string): Promise<{ size: number; identity: string } | undefined>;
  read(key: string, start: number, end: number, identity?: string): Promise<Uint8Array>;
  /** Puts an object in the place of another, or where there is none; refused where something else is there. */
  put(key: string, body: Readable, condition: Condition): Promise<{ identity: string } | 'refused'>;
  putText(key: string, text: string): Promise<void>;
  /** Only if it is still the same object, where an identity is given. */
  remove(key: string, identity?: string): Promise<void>;
  /** Ends uploads below a prefix that nobody will finish: their parts are paid for and seen by nobody. */
  abortLeftovers(prefix: string): Promise<void>;
  close(): void;
}

export interface Condition {
  /** The identity of the object to be replaced. */
  over: string | undefined;
  /** Goes with the object, so that whoever put it can be told. */
  mark: string;
}

/** Files above this size go in parts, two at a time: what is held in memory is bounded. */
const PART_BYTES = 8 * 1024 * 1024;
const MARK = 'tributary-mark';
/** By our clock and the server's: an hour between them must not end what somebody is sending. */
const LEFT_AFTER_MS = 24 * 60 * 60_000;
/** The client would wait for ever for a server that says nothing; the transaction of the state waits with it. */
const CONNECT_MS = 10_000;
const SILENCE_MS = 30_000;

export function createBucket({ name, pathStyle }: { name: string; pathStyle: boolean }): Bucket {
  const client = new S3Client({
    forcePathStyle: pathStyle,
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
  });
  const at = (key: string) => ({ Bucket: name, Key: key });
  const asFault = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw s3Fault(error, name);
    });

  const head = async (key: string) => {
    try {
      return await client.send(new HeadObjectCommand(at(key)));
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw s3Fault(error, name);
    }
  };

  /** Where its last request was refused, Upload leaves the parts. */
  const abort = (key: string, id: string): Promise<unknown> =>
    // Recovery: what cannot be ended now is found when leftovers are looked for.
    client.send(new AbortMultipartUploadCommand({ ...at(key), UploadId: id })).catch(() => undefined);

  return {
    async *list(prefix) {
      let token: string | undefined;
      do {
        const page = await asFault(
          client.send(new ListObjectsV2Command({ Bucket: name, Prefix: prefix, ContinuationToken: token })),
        );
        for (const { Key, ETag, LastModified } of page.Contents ?? []) {
          if (Key && ETag) yield { key: Key, identity: ETag, modifiedAt: LastModified?.getTime() ?? 0 };
        }
        token = page.NextContinuationToken;
      } while (token);
    },
    async head(key) {
      const found = await head(key);
      return found && { size: found.ContentLength ?? 0, identity: found.ETag ?? '' };
    },
    async read(key, start, end, identity) {
      const range = { Range: `bytes=${start}-${end - 1}`, ...(identity !== undefined && { IfMatch: identity }) };
      const answer = await asFault(client.send(new GetObjectCommand({ ...at(key), ...range })));
      const bytes = await asFault(answer.Body?.transformToByteArray() ?? Promise.resolve(new Uint8Array()));
      if (bytes.length !== end - start) throw s3Fault(new Error(`${key} gave ${bytes.length} bytes`), name);
      return bytes;
    },
    async put(key, body, { over, mark }) {
      const upload = new Upload({
        client,
        params: {
          ...at(key),
          Body: body,
          ContentType: 'application/vnd.apache.parquet',
          ChecksumAlgorithm: 'CRC32',
          Metadata: { [MARK]: mark },
          ...(over === undefined ? { IfNoneMatch: '*' } : { IfMatch: over }),
        },
        partSize: PART_BYTES,
        queueSize: 2,
      });
      try {
        return { identity: (await upload.done()).ETag ?? '' };
      } catch (error) {
        if (upload.uploadId !== undefined) await abort(key, upload.uploadId);
        if (!isRefused(error)) throw s3Fault(error, name);
        // Recovery: the request may have been sent twice, and the first have done its work.
        const there = await head(key);
        return there?.Metadata?.[MARK] === mark ? { identity: there.ETag ?? '' } : 'refused';
      } finally {
        body.destroy();
      }
    },
    async putText(key, text) {
      await asFault(
        client.send(new PutObjectCommand({ ...at(key), Body: Buffer.from(text), ChecksumAlgorithm: 'CRC32' })),
      );
    },
    async remove(key, identity) {
      const condition = identity === undefined ? {} : { IfMatch: identity };
      await asFault(client.send(new DeleteObjectCommand({ ...at(key), ...condition })));
    },
    async abortLeftovers(prefix) {
      const { Uploads = [] } = await asFault(
        client.send(new ListMultipartUploadsCommand({ Bucket: name, Prefix: prefix })),
      );
      for (const { Key, UploadId, Initiated } of Uploads) {
        const isLeft = Initiated !== undefined && Date.now() - Initiated.getTime() > LEFT_AFTER_MS;
        if (!Key?.endsWith('.parquet') || !UploadId || !isLeft) continue;
        await asFault(client.send(new AbortMultipartUploadCommand({ ...at(Key), UploadId })));
      }
    },
    close: () => client.destroy(),
  };
}

interface S3Error {
  name?: string;
  message?: string;
  code?: string;
  $metadata?: { httpStatusCode?: number };
}

const statusOf = (error: unknown): number | undefined => (error as S3Error).$metadata?.httpStatusCode;

export const isAbsent = (error: unknown): boolean =>
  statusOf(error) === 404 && (error as S3Error).name !== 'NoSuchBucket';

/** The condition of a request did not hold, or somebody else was at it in the same moment. */
export const isRefused = (error: unknown): boolean => [409, 412].includes(statusOf(error) ?? 0);

/** What the person can do about it. The client's own errors hold no secrets: keys are only in signed headers. */
export function s3Fault(error: unknown, bucket: string): Fault {
  const { name = 'Error', message = String(error) } = error as S3Error;
  const status = statusOf(error);
  const what = `s3://${bucket}: ${name}: ${message}`;
  if (name === 'NoSuchBucket' || status === 404) {
    return new ConfigError(what, { next: 'create the bucket, or correct path of the sink', cause: error });
  }
  if (/Credentials/.test(name) || status === 401 || status === 403) {
    return new ConfigError(what, {
      next: 'give credentials that may list, read and write there, in one of the usual ways (AWS_ACCESS_KEY_ID, a profile, a role)',
      cause: error,
    });
  }
  if (isRefused(error)) {
    return new RetryLater(`s3://${bucket}: an object was replaced while it was being read`, {
      next: 'run again',
      cause: error,
    });
  }
  if (status !== undefined)
    return new RetryLater(what, { next: 'run again; what was committed is safe', cause: error });
  const said = lineSays(error as S3Error);
  return new RetryLater(`s3://${bucket}: ${said ?? `${name}: ${message}`}`, {
    next: 'check the network, AWS_ENDPOINT_URL_S3 and AWS_REGION; then run again: what was committed is safe',
    cause: error,
  });
}

/** Where no server answered, the client speaks of sockets and of itself. */
function lineSays({ name, code = '' }: S3Error): string | undefined {
  if (name === 'TimeoutError') return 'it does not answer';
  const meaning = meaningOf(code);
  return meaning && `${meaning.what} (${code})`;
}
