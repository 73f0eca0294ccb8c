import { createHash, createHmac, randomBytes, scryptSync } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { endSession, readEndedSessions } from '../cursor/audit.ts';
import type { Queryable } from '../cursor/database/index.ts';
import { ConfigError } from '../model/errors.ts';
import { HOUR_MS } from '../model/window.ts';
import { HttpError } from './answers.ts';
import { isSame, ROLES, type Role, type Token } from './tokens.ts';

export interface Visitor {
  name: string;
  role: Role;
  /** Only for browsers; programs send their token with every request. */
  session: Session | undefined;
  /** A digest of the token and its role: if the token of this name is replaced, the visitor loses access. */
  grant: string;
}

export interface AccessOptions {
  tokens: readonly Token[];
  /** The path under which the page is served, and to which the cookie is limited. */
  basePath?: string;
  /** Accepts only this machine's names in the Host header, since another site may have its name resolve to it (DNS rebinding). */
  onlyLoopbackNames?: boolean;
}

const COOKIE = 'tributary_session';
/** How soon a server detects that another one ended a session. */
const REFRESH_MS = 2000;

export function createAccess(state: Queryable, options: AccessOptions, now: () => number = Date.now) {
  const { basePath = '', onlyLoopbackNames = false } = options;
  let all = options.tokens;
  let ended = new Set<string>();
  let refreshedAt = 0;
  let onChange = (): void => {};
  const tokens = (): Token[] => all.filter(({ expiresAt }) => (expiresAt ?? Number.POSITIVE_INFINITY) > now());
  const sessions = createSessions({ tokens, isEnded: (digest) => ended.has(digest) }, now);

  const refresh = async (): Promise<void> => {
    refreshedAt = now();
    const stored = await readEndedSessions(state);
    const hasNew = [...stored].some((digest) => !ended.has(digest));
    ended = new Set([...ended, ...stored]);
    if (hasNew) onChange();
  };
  /** Recovery: keeps what was read before; the next call tries again. */
  const refreshSoon = (): void => {
    if (now() - refreshedAt > REFRESH_MS) refresh().catch(() => {});
  };
  /** Every token is compared, so that timing does not reveal which one matched. */
  const tokenOf = (given: string): Token | undefined => tokens().filter(({ secret }) => isSame(given, secret))[0];
  const visitorOf = (token: Token, session?: Session): Visitor => {
    const { name, role } = token;
    return { name, role, session, grant: grantOf(token) };
  };
  const cookieText = (value: string, maxAge: number, isSecure: boolean): string =>
    `${COOKIE}=${value}; Path=${basePath}/; HttpOnly; SameSite=Strict; Max-Age=${maxAge}${isSecure ? '; Secure' : ''}`;

  return {
    /** Identifies the client by token or cookie. `wrong`: the token is unknown. */
    identify(headers: IncomingHttpHeaders): Visitor | 'wrong' | undefined {
      const bearer = /^Bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1];
      if (bearer !== undefined) {
        const token = tokenOf(bearer);
        return token ? visitorOf(token) : 'wrong';
      }
      refreshSoon();
      const session = sessions.read(cookieOf(headers));
      return session && visitorOf(session.token, session);
    },
    /** Throws for requests from pages of other sites: they could not read the response, but an export would cost requests. */
    checkSite(headers: IncomingHttpHeaders): void {
      // `none`: typed into the address bar. Absent: not a browser, or no TLS, where the SameSite=Strict cookie keeps other sites out.
      if (['same-origin', 'none'].includes(siteOf(headers))) return;
      throw new HttpError(403, 'the request came from a page of another site', {
        next: 'open it from the page of this server',
      });
    },
    checkHost(headers: IncomingHttpHeaders): void {
      if (!onlyLoopbackNames || isLoopback(hostName(headers.host ?? ''))) return;
      throw new HttpError(403, 'this server answers only to localhost', {
        next: 'open it as http://localhost or http://127.0.0.1, or set http.token to use other names',
      });
    },
    /** Throws unless the request came from this server's page, or from a program with a token. */
    checkChange(headers: IncomingHttpHeaders, { session }: Visitor): void {
      if (!session) return;
      const given = String(headers['x-csrf-token'] ?? '');
      if (siteOf(headers) === 'same-origin' && isSame(given, sessions.csrfOf(session))) return;
      throw new HttpError(403, 'the CSRF token is missing or old', {
        kept: 'nothing was changed',
        next: 'ask GET /api/session for the token, and send it in the header x-csrf-token',
      });
    },
    /** Exchanges a token for a cookie; undefined if the token is unknown. */
    signIn(secret: string, isSecure: boolean): { cookie: string; visitor: Visitor } | undefined {
      const token = tokenOf(secret);
      if (!token) return undefined;
      const value = sessions.open(token);
      const visitor = visitorOf(token, sessions.read(value));
      return { cookie: cookieText(value, SESSION_HOURS * 3600, isSecure), visitor };
    },
    /** Ends the session permanently, also after a restart and on other servers. Returns the cookie that removes the old one. */
    async signOut({ id, expiresAt }: Session, isSecure: boolean): Promise<string> {
      ended.add(digestOf(id));
      onChange();
      await endSession(state, digestOf(id), expiresAt);
      return cookieText('', 0, isSecure);
    },
    csrfOf: ({ session }: Visitor): string | null => (session ? sessions.csrfOf(session) : null),
    /** Whether the access of a client that was authenticated earlier is still valid. */
    holds({ name, session, grant }: Visitor): boolean {
      refreshSoon();
      const token = tokens().find((one) => one.name === name);
      if (!token || grantOf(token) !== grant) return false;
      return !session || (session.expiresAt > now() && !ended.has(digestOf(session.id)));
    },
    /** Also ends the sessions of removed tokens. */
    replaceTokens(tokens: readonly Token[]): void {
      all = tokens;
      onChange();
    },
    /** Sets the callback for when clients may have lost their access. */
    onChange(listener: () => void): void {
      onChange = listener;
    },
    refresh,
  };
}

export type Access = ReturnType<typeof createAccess>;

const grantOf = ({ role, secret }: Token): string => digestOf(`${role} ${secret}`);

export const mayDo = (visitor: Visitor, role: Role): boolean => ROLES.indexOf(visitor.role) >= ROLES.indexOf(role);

/** Refuses to listen on other interfaces than loopback with a generated token: an operator must choose tokens for others. */
export function checkBinding(http: { host: string; token?: string | undefined; tokens?: object }): void {
  const { host, token, tokens = {} } = http;
  if (token !== undefined || Object.keys(tokens).length > 0 || isLoopback(host)) return;
  throw new ConfigError(`http.host is ${host}, which others can reach, and there is no http.token`, {
    kept: 'nothing was started',
    next: 'set http.token to a long random text (openssl rand -hex 32 makes one), or http.host to 127.0.0.1',
  });
}

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));

const hostName = (host: string): string => host.toLowerCase().replace(/^\[(.*)\](:\d+)?$|:\d+$/, '$1');

/** The origin of the requesting page, as the browser states it. */
const siteOf = (headers: IncomingHttpHeaders): string => String(headers['sec-fetch-site'] ?? 'same-origin');

const cookieOf = ({ cookie = '' }: IncomingHttpHeaders): string | undefined =>
  new RegExp(`(?:^|; *)${COOKIE}=([^;]*)`).exec(cookie)?.[1];

export interface Session {
  id: string;
  token: Token;
  expiresAt: number;
}

export const SESSION_HOURS = 12;

/**
 * Browser sessions: a cookie with its expiry and the name of a token, signed with a key derived from that token. Sessions are not
 * stored, so a restart signs nobody out, several servers accept each other's sessions, and replacing a token ends its sessions.
 * Only sessions that were ended early are stored.
 */
export function createSessions(
  { tokens, isEnded }: { tokens: () => readonly Token[]; isEnded: (digest: string) => boolean },
  now: () => number = Date.now,
) {
  const keys = new Map<string, Buffer>();
  /** By scrypt, so that guessing the token of a stolen cookie is slow. Computed once per token. */
  const keyOf = ({ secret }: Token): Buffer => {
    const key = keys.get(secret) ?? scryptSync(secret, 'tributary sessions', 32);
    keys.set(secret, key);
    return key;
  };
  const sign = (token: Token, text: string): string =>
    createHmac('sha256', keyOf(token)).update(text).digest('base64url');

  return {
    open(token: Token): string {
      const expiresAt = Math.min(now() + SESSION_HOURS * HOUR_MS, token.expiresAt ?? Number.POSITIVE_INFINITY);
      const name = Buffer.from(token.name).toString('base64url');
      const id = `${expiresAt}.${randomBytes(16).toString('base64url')}.${name}`;
      return `${id}.${sign(token, `session ${id}`)}`;
    },
    /** Undefined: forged, expired, ended, or signed for a token that is no longer in use. */
    read(cookie = ''): Session | undefined {
      const [until = '', nonce = '', name = '', signature = '', ...more] = cookie.split('.');
      const token = tokens().find((one) => one.name === Buffer.from(name, 'base64url').toString());
      const id = `${until}.${nonce}.${name}`;
      if (!token || more.length > 0 || !isSame(signature, sign(token, `session ${id}`))) return undefined;
      const expiresAt = Number(until);
      return expiresAt > now() && !isEnded(digestOf(id)) ? { id, token, expiresAt } : undefined;
    },
    /** The CSRF token, which proves that this server's page sent a change: other sites can send the cookie, but not this. */
    csrfOf: ({ id, token }: Session): string => sign(token, `csrf ${id}`),
  };
}

/** A digest of a secret, which is safe to store because it grants nothing. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url');
