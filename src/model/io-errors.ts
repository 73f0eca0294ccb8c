import { ConfigError, Fault, RetryLater } from './errors.ts';

const KEPT = 'all finished files; none is left half-written';

/** Translates disk errors into faults with advice. Any other error of the file system is a bug, and is not translated. */
function diskFault({ code, syscall }: NodeJS.ErrnoException, place: string): Fault | undefined {
  // Node throws ENOENT when a folder cannot be made on a read-only disk.
  switch (code === 'ENOENT' && syscall === 'mkdir' ? 'EROFS' : code) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return new RetryLater(`the disk of ${place} has no room left (${code})`, {
        kept: KEPT,
        next: 'make room there, or raise the quota; then run again',
      });
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return new ConfigError(`${place} may not be written (${code})`, {
        kept: KEPT,
        next: 'give the user who runs this the right to write there, or mount it writable; then run again',
      });
    case 'EEXIST':
    case 'ENOTDIR':
      return new ConfigError(`${place} cannot be used: a file is where a folder should be (${code})`, {
        kept: KEPT,
        next: 'move the file away; then run again',
      });
    case 'EIO':
    case 'ESTALE':
    case 'EMFILE':
    case 'ENFILE':
    case 'ENOENT':
      return new RetryLater(`${place} cannot be used now (${code})`, {
        kept: KEPT,
        next: 'check that the disk is mounted and healthy, and that nothing else removes files from it; then run again',
      });
    default:
      return undefined;
  }
}

/** Wraps an object so that disk errors of its methods, and of the objects they return, are translated. */
export function onDisk<T extends object>(place: string, target: T): T {
  const rethrow = (error: unknown): never => {
    throw (error instanceof Error && !(error instanceof Fault) && diskFault(error, place)?.because(error)) || error;
  };
  const wrapped = Object.entries(target).map(([name, part]) => {
    if (typeof part !== 'function') return [name, part];
    return [
      name,
      (...args: unknown[]) => {
        const result: unknown = part(...args);
        if (result instanceof Promise)
          return result.then((value) => (hasMethods(value) ? onDisk(place, value) : value), rethrow);
        return isIterable(result) ? eachOf(result, rethrow) : result;
      },
    ];
  });
  return Object.fromEntries(wrapped) as T;
}

async function* eachOf(items: AsyncIterable<unknown>, rethrow: (error: unknown) => never): AsyncGenerator<unknown> {
  try {
    yield* items;
  } catch (error) {
    rethrow(error);
  }
}

/** Whether a value is an open file or writer, with methods of its own. Byte arrays have none, and are not scanned one by one. */
const hasMethods = (value: unknown): value is object =>
  typeof value === 'object' &&
  value !== null &&
  !ArrayBuffer.isView(value) &&
  Object.values(value).some((part) => typeof part === 'function');

const isIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value;

/** What the error codes of a failed connection mean. The first matching row is used. */
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
    next: 'check that baseUrl names an https port, and any proxy in between',
  },
  {
    codes: /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN)$/,
    what: 'it cannot be reached',
    next: 'check the network and any firewall or proxy in between',
  },
  {
    codes: /^(ECONNRESET|EPIPE|ECONNABORTED|ERR_STREAM_PREMATURE_CLOSE)$/,
    what: 'the connection was cut',
    next: 'run it again; if the problem persists, check any proxy in between',
  },
  { codes: /^Z_|^ERR__ERROR_/, what: 'the compressed answer is damaged', next: 'run it again' },
  { codes: /^HPE_(?!HEADER_OVERFLOW)/, what: 'what answers there is not HTTP', next: 'check baseUrl and its port' },
];

export const meaningOf = (code: string): (typeof NETWORK_MEANINGS)[number] | undefined =>
  NETWORK_MEANINGS.find(({ codes }) => codes.test(code));
