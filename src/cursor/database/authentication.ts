import type { TLSSocket } from 'node:tls';
import { isLocalHost, requiredAuth, Unproven } from './errors.ts';

/** The default of Postgres and the minimum of RFC 7677: with fewer iterations, a password can be guessed by brute force. */
const LEAST_ITERATIONS = 4096;

/** A pg client, including the internals that its types do not declare. */
export interface Guarded {
  host: string;
  connection: {
    stream: unknown;
    on(event: string, listener: () => void): void;
    emit(event: string, error: Error): void;
  };
  /** Undefined before SCRAM begins, null once the server has proven through SCRAM that it knows the password. */
  saslSession?: object | null;
  _handleAuthCleartextPassword(message: unknown): void;
  _handleAuthMD5Password(message: unknown): void;
  _handleAuthSASLContinue(message: { data: string }): void;
}

/**
 * An impostor must not get the password. SCRAM does not reveal it, and an impostor cannot complete it. Other methods are only answered if
 * the URL allows them by `require_auth`, as in libpq; without it, if the server is on this machine or is authenticated by its certificate.
 */
export function guardPassword(client: Guarded, url: string): void {
  const required = requiredAuth(url);
  const isTrusted = (): boolean =>
    !required && (isLocalHost(client.host) || (client.connection.stream as Partial<TLSSocket>).authorized === true);
  const refuse = (error: Unproven): void => client.connection.emit('error', error);
  let isAsked = false;

  const only = (method: 'password' | 'md5', answer: (message: unknown) => void) => (message: unknown) => {
    isAsked = true;
    if (isTrusted() || required?.includes(method)) answer.call(client, message);
    else refuse(new Unproven(required ? undefined : method));
  };
  client._handleAuthCleartextPassword = only('password', client._handleAuthCleartextPassword);
  client._handleAuthMD5Password = only('md5', client._handleAuthMD5Password);

  const proceed = client._handleAuthSASLContinue;
  client._handleAuthSASLContinue = (message) => {
    const iterations = Number(/(?:^|,)i=(\d+)/.exec(message.data)?.[1]);
    if (iterations < LEAST_ITERATIONS && !isTrusted()) refuse(new Unproven());
    else proceed.call(client, message);
  };

  client.connection.on('authenticationOk', () => {
    const isNoneAllowed = !required || required.includes('none');
    const isProven = client.saslSession === null;
    const isUnfinished = !isProven && client.saslSession !== undefined;
    if (isUnfinished || !(isProven || isAsked || isNoneAllowed)) refuse(new Unproven());
  });
}
