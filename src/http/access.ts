import { isIP } from 'node:net';
import { ConfigError } from '../model/errors.ts';
import type { Visit } from './access-types.ts';
import type { Session } from './api-types.ts';
import { Refusal } from './route.ts';
import { createSessions, isSame, NOBODY, SESSION_HOURS, type Sessions } from './sessions.ts';
import { createThrottle } from './throttle.ts';

/** Who may come in. The server asks it about every request, before anything else looks at one. */
export interface Access {
  /** Throws for a request that is not meant for us, whoever sends it. */
  checkHost(request: Visit): void;
  /** Throws for a page of another site that asks the API in its reader's name: it could not read the answer, but an export costs requests. */
  checkSite(request: Visit): void;
  /** The session that a request belongs to; undefined: sign in first. Throws where too many wrong tokens came. */
  enter(request: Visit): Entry | undefined;
  /** Throws unless the change was asked for by our own page, or by a program with the token. */
  checkChange(request: Visit, entry: Entry): void;
  /** Trades the token for a cookie. */
  signIn(request: Visit, token: string): { cookie: string; session: Session };
  signOut(request: Visit): string;
  describe(request: Visit): Session;
}

export interface Entry {
  /** `token`: a program that sent the token itself. */
  by: 'token' | 'cookie' | 'nobody';
  id: string;
}

const COOKIE = 'tributary_session';

export interface AccessOptions {
  host: string;
  token: string | undefined;
}

/** Refuses to serve others than this machine without a token: there is data behind it, and verbs that cost money. */
export function checkBinding({ host, token }: AccessOptions): void {
  if (token !== undefined || isLoopback(host)) return;
  throw new ConfigError(`http.host is ${host}, which others can reach, and there is no http.token`, {
    kept: 'nothing was started',
    next: 'set http.token to a long random text (openssl rand -hex 32 makes one), or http.host to 127.0.0.1',
  });
}

export function createAccess({ host, token }: AccessOptions): Access {
  checkBinding({ host, token });
  const sessions = createSessions(token);
  const throttle = createThrottle();

  /** The wrong token of a person costs nothing; the hundredth of a program is not even looked at. */
  const isToken = (given: string, address: string): boolean => {
    const wait = throttle.waitSeconds(address);
    if (wait > 0)
      throw new Refusal(429, 'too many wrong tokens from this address', {
        next: `wait ${wait} s, then try again`,
        retryAfter: wait,
      });
    if (token !== undefined && isSame(given, token)) return true;
    throttle.failed(address);
    return false;
  };

  const enter: Access['enter'] = (request) => {
    const bearer = /^Bearer +(.+)$/i.exec(one(request.headers.authorization) ?? '')?.[1];
    if (token === undefined) return { by: 'nobody', id: NOBODY };
    if (bearer !== undefined) return isToken(bearer, request.address) ? { by: 'token', id: 'token' } : undefined;
    const id = sessions.read(cookieOf(request));
    return id === undefined ? undefined : { by: 'cookie', id };
  };

  return {
    enter,
    checkHost(request) {
      // With a token, a page of another name has no cookie of ours and learns nothing; a proxy may use any name.
      if (token !== undefined || isLoopback(nameOf(one(request.headers.host) ?? ''))) return;
      throw new Refusal(403, 'this server answers only to localhost', {
        next: 'open it as http://localhost or http://127.0.0.1, or set http.token to use other names',
      });
    },
    checkSite({ headers }) {
      // `none`: typed by a person. Absent: no browser, or an address without TLS, where there is a token and a strict cookie.
      if (['same-origin', 'none'].includes(siteOf(headers))) return;
      throw new Refusal(403, 'a page of another site asked for this', { next: 'open it from the page of this server' });
    },
    checkChange({ headers }, { by, id }) {
      if (by === 'token') return;
      const given = one(headers['x-csrf-token']) ?? '';
      if (siteOf(headers) === 'same-origin' && isSame(given, sessions.csrfOf(id))) return;
      throw new Refusal(403, 'the CSRF token is missing or old', {
        kept: 'nothing was changed',
        next: 'ask GET /api/session for the token, and send it in the header x-csrf-token',
      });
    },
    signIn(request, given) {
      if (token === undefined) throw new Refusal(400, 'this server has no token: everybody on this machine is in');
      if (!isToken(given, request.address))
        throw new Refusal(401, 'that is not the token', { next: 'see http.token in the config' });
      const value = sessions.open();
      const session = { needsToken: true, signedIn: true, csrf: csrfOf(sessions, value) };
      return { cookie: cookieText(value, SESSION_HOURS * 3600, isSecure(request)), session };
    },
    signOut(request) {
      const id = sessions.read(cookieOf(request));
      if (id !== undefined) sessions.end(id);
      return cookieText('', 0, isSecure(request));
    },
    describe(request) {
      const entry = enter(request);
      return {
        needsToken: token !== undefined,
        signedIn: entry !== undefined,
        csrf: entry === undefined || entry.by === 'token' ? null : sessions.csrfOf(entry.id),
      };
    },
  };
}

/** 127.0.0.0/8, ::1 and localhost. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));

/** The name in a Host header, without its port. */
const nameOf = (host: string): string =>
  host
    .toLowerCase()
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1');

const one = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

/** Where the page is from that asks, as the browser says it. */
const siteOf = (headers: Visit['headers']): string => one(headers['sec-fetch-site']) ?? 'same-origin';

const cookieOf = ({ headers }: Visit): string | undefined =>
  (one(headers.cookie) ?? '')
    .split(/; */)
    .find((pair) => pair.startsWith(`${COOKIE}=`))
    ?.slice(COOKIE.length + 1);

const csrfOf = (sessions: Sessions, cookie: string): string => sessions.csrfOf(sessions.read(cookie) ?? NOBODY);

/** Behind a proxy that speaks TLS, the cookie must not travel without it. Who lies here only harms himself. */
const isSecure = ({ headers }: Visit): boolean => one(headers['x-forwarded-proto']) === 'https';

const cookieText = (value: string, maxAge: number, secure: boolean): string =>
  [
    `${COOKIE}=${value}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    `Max-Age=${maxAge}`,
    ...(secure ? ['Secure'] : []),
  ].join('; ');
