import { ConfigError, Fault, RetryLater } from '../../model/errors.ts';

/** The parts of a connection URL that may appear in messages. The password is not among them, so it cannot leak. */
interface Address {
  user: string;
  host: string;
  port: string;
  database: string;
}

const UNENCODED = 'in the user name and password, write @ as %40, / as %2F, # as %23, ? as %3F and % as %25';

/** Parses the URL strictly. Errors never quote the part that could not be parsed, since it may contain the password. */
export function addressOf(url: string): Address {
  const faulty = (what: string): never => {
    // No cause: Node's error has the whole URL, including the password, in its `input`.
    throw new ConfigError(`the database URL ${what}`, {
      next: `write it as postgresql://user:password@host:5432/database; ${UNENCODED}`,
    });
  };
  if (!URL.canParse(url)) return faulty('is not a valid URL');
  const { protocol, username, hostname, port, pathname, search, hash, searchParams } = new URL(url);
  if (protocol !== 'postgres:' && protocol !== 'postgresql:') {
    return faulty(`must begin with postgresql:// (it begins with ${protocol.slice(0, 20)})`);
  }
  // An unencoded / or ? in the password moves the rest of it, with the @, into the path or the query.
  if (hash !== '' || /@/.test(pathname + search)) return faulty('holds an unencoded character in its password');
  if (requiredAuth(url)?.some((method) => !METHODS.includes(method)))
    return faulty(`has an unknown require_auth (it may be ${METHODS.join(', ')})`);
  try {
    return {
      user: decodeURIComponent(username),
      host: searchParams.get('host') ?? (decodeURIComponent(hostname) || 'localhost'),
      port: searchParams.get('port') ?? (port || '5432'),
      database: decodeURIComponent(pathname.slice(1)) || decodeURIComponent(username),
    };
  } catch {
    // Recovery: an invalid % escape; pg would fail on it later, with a less helpful message.
    return faulty('holds a % that is not followed by two hex digits');
  }
}

/** Whether the traffic, rows and authentication included, goes to another machine without encryption. */
export function isInTheClear(url: string): boolean {
  const { host } = addressOf(url);
  const { searchParams } = new URL(url);
  const mode = searchParams.get('sslmode') ?? (searchParams.get('ssl') === 'true' ? 'require' : 'disable');
  return mode === 'disable' && !isLocalHost(host);
}

export const isLocalHost = (host: string): boolean =>
  host === 'localhost' || host.startsWith('/') || /^127\.|^\[?::1\]?$/.test(host);

const METHODS = ['scram-sha-256', 'md5', 'password', 'none'];

/** The authentication methods that the URL allows by libpq's `require_auth`; undefined if the URL does not have it. */
export const requiredAuth = (url: string): string[] | undefined =>
  URL.canParse(url) ? new URL(url).searchParams.get('require_auth')?.split(',') : undefined;

export const UNPROVEN = 'it did not prove by SCRAM that it knows the password';

/** The server uses an authentication method that is not allowed, or does not prove that it knows the password. */
export class Unproven extends Error {
  readonly asked: 'password' | 'md5' | undefined;

  constructor(asked?: 'password' | 'md5') {
    super(asked ? `it asks for the password as ${asked === 'md5' ? 'an MD5 hash' : 'clear text'}` : UNPROVEN);
    this.asked = asked;
  }
}

const UNREACHABLE = /^(ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EPIPE|EAI_AGAIN)$/;

/** SQLSTATE classes and codes after which a retry may succeed: lost connection, insufficient resources, conflict, shutdown. */
const RETRYABLE = /^(08...|53...|57014|57P0[1-5]|40001|40P01|55000|55P03|25P03)$/;

/** Node's error codes for a certificate that is not trusted, for any protocol over TLS. */
export const UNTRUSTED = /CERT|^UNABLE_TO|^ERR_TLS_|SELF_SIGNED/;
const NO_TLS = /^(The server does not support SSL connections|There was an error establishing an SSL connection)/;

const LOST =
  /^(Connection terminated|timeout expired|timeout exceeded|Query read timeout|Client has encountered a connection error|Client was closed)/;

/** Converts driver errors to faults, which tell the user what to do. SQL errors are returned unchanged: callers check their `code`. */
export function databaseFault(error: unknown, address: Address): unknown {
  if (!(error instanceof Error) || error instanceof Fault) return error;
  const thrown = { error, code: codeOf(error), server: `Postgres at ${address.host}:${address.port}` };
  const fault =
    refusal(thrown, address) ?? wrongServer(thrown, address) ?? tlsFault(thrown) ?? retryable(thrown, address);
  return fault?.because(error) ?? error;
}

interface Thrown {
  error: Error;
  code: string;
  server: string;
}

function refusal({ error, code, server }: Thrown, { user, host, port, database }: Address): Fault | undefined {
  switch (code) {
    case '28P01':
    case '28000':
      return new ConfigError(`${server} refused user "${user}": ${error.message}`, {
        next: 'check the user name and the password in the database URL, and pg_hba.conf of the server',
      });
    case '3D000':
      return new ConfigError(`${server} has no database "${database}"`, {
        next: `create it (CREATE DATABASE "${database}") or correct the name in the database URL`,
      });
    case 'ENOTFOUND':
      return new ConfigError(`the host "${host}" of the database URL is not known`, {
        next: 'correct the host name in the database URL, or check the name service of this machine',
      });
    case '42501':
      return new ConfigError(`user "${user}" is not allowed to do this in database "${database}": ${error.message}`, {
        next: `grant the missing right to "${user}", or use a database user who has it`,
      });
  }
  // PgBouncer's message, which is not localised.
  const [, parameter] = /^unsupported startup parameter(?: in options)?: (\S+)/.exec(error.message) ?? [];
  if (parameter === undefined) return undefined;
  return new ConfigError(`the connection pooler at ${host}:${port} refuses the setting ${parameter}`, {
    next: `take ${parameter} out of the database URL, or add it to ignore_startup_parameters of the pooler`,
  });
}

/** Authentication failed on our side: we have no password, or the server does not prove that it knows it. */
function wrongServer({ error, server }: Thrown, { user }: Address): Fault | undefined {
  // pg's message if the server requires a password and neither the URL nor PGPASSWORD nor .pgpass has one.
  if (/^SASL: .*password must be a (?:non-empty )?string/.test(error.message)) {
    return new ConfigError(`${server} requires a password for user "${user}", and the database URL has none`, {
      next: 'write it into the database URL (postgresql://user:password@host/database), or set PGPASSWORD',
    });
  }
  if (error instanceof Unproven && error.asked) {
    return new ConfigError(`${server} has not authenticated itself, and ${error.message}`, {
      kept: 'the password was not sent',
      next: `turn on TLS (sslmode=verify-full in the database URL) or scram-sha-256 in the server, or allow it by require_auth=${error.asked} in the URL`,
    });
  }
  // The prefix of pg's messages for failed SCRAM, such as a signature by a server that does not know the password.
  if (!(error instanceof Unproven) && !error.message.startsWith('SASL: ')) return undefined;
  return new ConfigError(`${server} could not authenticate itself: ${error.message}`, {
    kept: 'neither the password nor any row was sent',
    next: 'find out what listens there, and end it, or correct host and port in the database URL',
  });
}

function tlsFault({ error, code, server }: Thrown): Fault | undefined {
  if (UNTRUSTED.test(code)) {
    return new ConfigError(`${server}: its TLS certificate is not trusted (${code})`, {
      next: 'check the certificate, the host name in the database URL and the clock of this machine; name your own CA by sslrootcert',
    });
  }
  if (!/^EPROTO$|^ERR_SSL_/.test(code) && !NO_TLS.test(error.message)) return undefined;
  return new ConfigError(`${server} does not speak TLS as expected${code ? ` (${code})` : ''}`, {
    next: 'turn on ssl in the server, or take sslmode out of the database URL',
  });
}

function retryable({ error, code, server }: Thrown, { database }: Address): Fault | undefined {
  if (code === '25006') {
    return new RetryLater(`${server} is read-only now: ${error.message}`, {
      kept: 'everything that was committed; nothing was changed',
      next: 'point the database URL at the primary, or wait until the failover is over; then run again',
    });
  }
  if (UNREACHABLE.test(code)) {
    return new RetryLater(`${server} cannot be reached (${code})`, {
      next: 'start the server, or correct host and port in the database URL; then run again',
    });
  }
  if (!RETRYABLE.test(code) && !LOST.test(error.message)) return undefined;
  const what = /^timeout ex/.test(error.message) ? 'it does not answer' : error.message;
  return new RetryLater(`${server}, database "${database}": ${what}`, {
    kept: 'a transaction that was not committed changed nothing',
    next: 'run again',
  });
}

/** For a host with several addresses (localhost), Node throws an AggregateError with an empty message: the first error's code counts. */
function codeOf(error: Error): string {
  if ('code' in error && typeof error.code === 'string') return error.code;
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return codeOf(error.errors[0]);
  return '';
}
