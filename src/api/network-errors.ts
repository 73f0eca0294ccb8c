import { RetryLater } from '../model/errors.ts';
import { meaningOf } from '../model/network-meanings.ts';

/**
 * A failed connection as an error that may be tried again, or undefined where the failure is none of the network: a bug must
 * not be retried as if it were weather. The original error is described, not carried along: what a library hangs on its
 * errors is not ours to vouch for, and the key was in that request.
 */
export function networkFault(error: unknown, url: URL, bytesRead: number): RetryLater | undefined {
  const cause = networkCause(error);
  if (!cause) return undefined;
  // What began as HTTP and went wrong in the middle was cut there.
  const row = meaningOf(bytesRead > 0 && cause.code.startsWith('HPE_') ? 'ECONNRESET' : cause.code);
  const place = `${url.hostname}:${url.port || (url.protocol === 'https:' ? 443 : 80)}`;
  const after = bytesRead > 0 ? ` after ${bytesRead} bytes of the answer` : '';
  return new RetryLater(`${place}: ${row?.what ?? 'the request failed'}${after} (${cause.code || cause.message})`, {
    next: row?.next ?? 'run it again; if it stays, check the network and baseUrl',
  });
}

/** fetch wraps whatever the network did in `fetch failed` or `terminated`, with the real error as its cause. */
function networkCause(error: unknown): { code: string; message: string } | undefined {
  if (!(error instanceof TypeError) || !/^(fetch failed|terminated)$/.test(error.message)) return undefined;
  const cause = error.cause instanceof Error ? error.cause : error;
  // Node 24 gives this error a name and no code.
  const fallback = cause.name === 'HTTPParserError' ? 'HPE_INVALID' : '';
  return { code: 'code' in cause && typeof cause.code === 'string' ? cause.code : fallback, message: cause.message };
}
