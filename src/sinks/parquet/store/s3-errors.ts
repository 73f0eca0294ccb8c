import { ConfigError, type Fault, RetryLater } from '../../../model/errors.ts';
import { meaningOf } from '../../../model/network-meanings.ts';

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
