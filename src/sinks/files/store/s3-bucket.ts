import type { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { ConfigError, type Fault, RetryLater } from '../../../model/errors.ts';
import { meaningOf } from '../../../model/io-errors.ts';

export type Bucket = ReturnType<typeof createBucket>;

interface NewObject {
  stream: Readable;
  size: number;
  over: string | undefined;
  /** Stored as metadata, to recognize our own object after a lost response. */
  mark: string;
}

/** Larger files are uploaded in parts, two at a time, to bound memory. */
const PART_BYTES = 8 * 1024 * 1024;
const MARK = 'tributary-mark';
/** Without timeouts the client would wait for ever for a silent server, and so would everyone waiting for the lock on the files. */
const CONNECT_MS = 10_000;
const SILENCE_MS = 30_000;

/** The only user of the S3 client. It exposes a few functions and throws our own errors. */
export function createBucket({ name, pathStyle }: { name: string; pathStyle: boolean }) {
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
      const {
        ContentLength: size = 0,
        ETag: identity = '',
        Metadata,
      } = await client.send(new HeadObjectCommand(at(key)));
      return { size, identity, mark: Metadata?.[MARK] };
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw s3Fault(statusOf(error) === 403 ? await explained(error) : error, name);
    }
  };

  /** An error response to HEAD has no body with the reason, so the reason comes from another request. */
  const explained = (error: unknown): Promise<unknown> =>
    client.send(new ListObjectsV2Command({ Bucket: name, MaxKeys: 1 })).then(
      () => error,
      (reason: unknown) => reason,
    );

  /** Aborts abandoned multipart uploads below a prefix: their parts are invisible and cost money. */
  const abortUploads = async (prefix: string, isLeft: (upload: { key: string; begunAt: number }) => boolean) => {
    let after: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } | undefined = {};
    while (after) {
      const page: ListMultipartUploadsCommandOutput = await asFault(
        client.send(new ListMultipartUploadsCommand({ Bucket: name, Prefix: prefix, ...after })),
      );
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        const begunAt = Initiated?.getTime() ?? Date.now();
        if (Key && UploadId && isLeft({ key: Key, begunAt })) await abort(Key, UploadId);
      }
      after = page.IsTruncated ? { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker } : undefined;
    }
  };

  /** Removes the parts that a failed upload leaves behind. */
  const abort = (key: string, id: string): Promise<unknown> =>
    // Recovery: what cannot be aborted now is removed with the leftovers later.
    client.send(new AbortMultipartUploadCommand({ ...at(key), UploadId: id })).catch(() => undefined);

  return {
    async *list(prefix: string) {
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
    head,
    async read(key: string, start: number, end: number, identity: string): Promise<Uint8Array> {
      const range = { Range: `bytes=${start}-${end - 1}`, IfMatch: identity };
      const answer = await asFault(client.send(new GetObjectCommand({ ...at(key), ...range })));
      const bytes = await asFault(answer.Body?.transformToByteArray() ?? Promise.resolve(new Uint8Array()));
      if (bytes.length !== end - start) throw s3Fault(new Error(`${key} gave ${bytes.length} bytes`), name);
      return bytes;
    },
    /** Replaces the object `over`, or creates a new one. Fails if another object is there, or if `over` is gone. */
    async put(key: string, { stream, size, over, mark }: NewObject) {
      // Some servers list uploads only by complete key. Only the writer that may replace this file uploads it, so all are abandoned.
      if (size > PART_BYTES) await abortUploads(key, (found) => found.key === key);
      const upload = new Upload({
        client,
        params: {
          ...at(key),
          Body: stream,
          ...(key.endsWith('.parquet') && { ContentType: 'application/vnd.apache.parquet' }),
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
        // Amazon responds 404 if the object of the condition is gone, or if somebody else aborted the upload.
        if (!isRefused(error) && !isAbsent(error)) throw s3Fault(error, name);
        // Recovery: the client may have retried after a first request that succeeded; then our own object is there.
        const there = await head(key);
        if (there?.mark === mark) return { identity: there.identity };
        return there || over === undefined ? 'replaced' : 'removed';
      } finally {
        stream.destroy();
      }
    },
    async remove(key: string, identity?: string): Promise<void> {
      const condition = identity === undefined ? {} : { IfMatch: identity };
      await asFault(client.send(new DeleteObjectCommand({ ...at(key), ...condition })));
    },
    abortUploads,
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

/** By error name, because some servers respond 404 for an unknown bucket or access key, too. */
const isAbsent = (error: unknown): boolean =>
  statusOf(error) === 404 && ['NotFound', 'NoSuchKey', 'NoSuchUpload'].includes((error as S3Error).name ?? '');

/** The condition of a request failed, or another writer wrote at the same time. */
const isRefused = (error: unknown): boolean => [409, 412].includes(statusOf(error) ?? 0);

/** What to do about each server error, by name. All other 401 and 403 errors are about permissions. */
const REFUSALS: Readonly<Record<string, { what: string; next: string }>> = {
  NoSuchBucket: { what: 'there is no such bucket', next: 'create the bucket, or correct path of the sink' },
  InvalidAccessKeyId: { what: 'the access key is unknown there', next: 'correct AWS_ACCESS_KEY_ID, or the profile' },
  SignatureDoesNotMatch: {
    what: 'the secret does not belong to the access key',
    next: 'correct AWS_SECRET_ACCESS_KEY, or the profile',
  },
  ExpiredToken: { what: 'the credentials have expired', next: 'renew them, then run again' },
  RequestTimeTooSkewed: { what: 'the clocks differ too much', next: 'set the clock of this machine' },
  PermanentRedirect: { what: 'the bucket is in another region', next: 'set AWS_REGION to the region of the bucket' },
};

/** The client's errors contain no secrets: keys are only in signed headers. */
function s3Fault(error: unknown, bucket: string): Fault {
  const { name = 'Error', message = String(error) } = error as S3Error;
  const status = statusOf(error);
  const place = `s3://${bucket}`;
  const refusal = REFUSALS[name];
  if (refusal) return new ConfigError(`${place}: ${refusal.what} (${name})`, { next: refusal.next, cause: error });
  if (/Credentials/.test(name) || status === 401 || status === 403) {
    const what = /Credentials/.test(name) ? message : `access was denied (${/Unknown/.test(name) ? status : name})`;
    return new ConfigError(`${place}: ${what}`, {
      next: 'give credentials that may list, read and write there, in one of the usual ways (AWS_ACCESS_KEY_ID, a profile, a role)',
      cause: error,
    });
  }
  if (isAbsent(error) || isRefused(error)) {
    const what = isAbsent(error) ? 'removed' : 'replaced';
    return new RetryLater(`${place}: an object was ${what} while it was being read`, {
      next: 'run again',
      cause: error,
    });
  }
  if (status !== undefined)
    return new RetryLater(`${place}: ${name}: ${message}`, {
      next: 'run again; what was committed is safe',
      cause: error,
    });
  const explanation = networkExplanation(error as S3Error);
  return new RetryLater(`${place}: ${explanation ?? `${name}: ${message}`}`, {
    next: 'check the network, AWS_ENDPOINT_URL_S3 and AWS_REGION; then run again: what was committed is safe',
    cause: error,
  });
}

function networkExplanation({ name, code = '' }: S3Error): string | undefined {
  if (name === 'TimeoutError') return 'it does not answer';
  const meaning = meaningOf(code);
  return meaning && `${meaning.what} (${code})`;
}
