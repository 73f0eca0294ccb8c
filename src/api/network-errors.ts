import { RetryLater } from '../model/errors.ts';

/** What the codes of a failed connection mean for a person. The first row that matches is told. */
export const NETWORK_MEANINGS: ReadonlyArray<{ codes: RegExp; what: string; next: string }> = [
  {
    codes: /^ECONNREFUSED$/,
    what: 'nothing listens there',
    next: 'check baseUrl and its port, or wait for the service',
  },
  { codes: /^ENOTFOUND$/, what: 'the host name is unknown', next: 'check the host name in baseUrl, and the DNS' },
  { codes: /^EAI_/, what: 'the DNS did not answer', next: 'check the network and the DNS' },
  {
    codes: /CERT|^UNABLE_TO|^ERR_TLS_|SELF_SIGNED/,
    what: 'its TLS certificate is not trusted',
    next: 'check the certificate, the clock of this machine, and NODE_EXTRA_CA_CERTS where a proxy re-signs',
  },
  {
    codes: /^EPROTO$|^ERR_SSL_/,
    what: 'it does not speak TLS as expected',
    next: 'check that baseUrl names an https port, and any proxy between',
  },
  {
    codes: /^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN)$/,
    what: 'it cannot be reached',
    next: 'check the network and any firewall or proxy between',
  },
  {
    codes: /^(ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/,
    what: 'the connection was cut',
    next: 'run it again; if it stays, check any proxy between',
  },
  { codes: /^Z_/, what: 'the compressed answer is damaged', next: 'run it again' },
  { codes: /^HPE_/, what: 'what answers there is not HTTP', next: 'check baseUrl and its port' },
];

export const meaningOf = (code: string): (typeof NETWORK_MEANINGS)[number] | undefined =>
  NETWORK_MEANINGS.find(({ codes }) => codes.test(code));

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
