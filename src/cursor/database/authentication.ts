import type { TLSSocket } from 'node:tls';
import { isLocalHost, requiredAuth, Unproven } from './errors.ts';

/** Postgres' own default, and the least that RFC 7677 allows: of fewer rounds, a password is soon guessed. */
const LEAST_ROUNDS = 4096;

/** A client of pg, with what that has no types for. */
export interface Guarded {
  host: string;
  connection: {
    stream: unknown;
    on(event: string, listener: () => void): void;
    emit(event: string, error: Error): void;
  };
  /** Undefined before SCRAM begins, null once the server has proven by it that it knows the password. */
  saslSession?: object | null;
  _handleAuthCleartextPassword(message: unknown): void;
  _handleAuthMD5Password(message: unknown): void;
  _handleAuthSASLContinue(message: { data: string }): void;
}

/**
 * A stranger in the server's place must not get the password. By SCRAM it gets none, and cannot prove that it knows it. Any other way is answered only if
 * the URL allows it by `require_auth`, as libpq does; without that, where the server is on this machine or has proven itself by its certificate.
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
    const rounds = Number(/(?:^|,)i=(\d+)/.exec(message.data)?.[1]);
    if (rounds < LEAST_ROUNDS && !isTrusted()) refuse(new Unproven());
    else proceed.call(client, message);
  };

  client.connection.on('authenticationOk', () => {
    const isNoneAllowed = !required || required.includes('none');
    const isProven = client.saslSession === null;
    const isBroken = !isProven && client.saslSession !== undefined;
    if (isBroken || !(isProven || isAsked || isNoneAllowed)) refuse(new Unproven());
  });
}
