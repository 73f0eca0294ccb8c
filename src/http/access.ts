import { createHash, createHmac, randomBytes, scryptSync } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { endSession, readEndedSessions } from '../cursor/audit.ts';
import type { Queryable } from '../cursor/database/index.ts';
import { ConfigError } from '../model/errors.ts';
import { HttpError } from './answers.ts';
import { isSame, ROLES, type Role, type Token } from './tokens.ts';

/** Who asks. */
export interface Visitor {
  name: string;
  role: Role;
  /** Of a browser; a program sends its token with every request. */
  session: Session | undefined;
}

export interface AccessOptions {
  tokens: readonly Token[];
  /** Under which the page is served: the cookie is for nothing else. */
  basePath?: string;
  /** Only names of this machine are answered to: a page elsewhere may have turned its own name to it. */
  onlyLoopbackNames?: boolean;
}

/** Who may come in, and what for. */
export interface Access {
  /** By its token or cookie; `wrong`: a token that is none of ours. */
  identify(headers: IncomingHttpHeaders): Visitor | 'wrong' | undefined;
  /** Throws for a page of another site that asks in its reader's name: it could not read the answer, but an export costs requests. */
  checkSite(headers: IncomingHttpHeaders): void;
  /** Throws for a name that is not ours. */
  checkHost(headers: IncomingHttpHeaders): void;
  /** Throws unless our own page asked, or a program with a token of its own. */
  checkChange(headers: IncomingHttpHeaders, visitor: Visitor): void;
  /** Trades a token for a cookie; undefined: it is none of ours. */
  signIn(secret: string, isSecure: boolean): { cookie: string; visitor: Visitor } | undefined;
  /** For good: also after a restart, also on other servers. Returns the cookie that removes the old one. */
  signOut(session: Session, isSecure: boolean): Promise<string>;
  csrfOf(visitor: Visitor): string | null;
  /** Whether a visitor of before would still be let in. */
  holds(visitor: Visitor): boolean;
  /** Other tokens from now on. */
  replaceTokens(tokens: readonly Token[]): void;
  /** Calls back whenever visitors may have lost their right to stay. */
  onChange(listener: () => void): void;
  /** Learns which sessions other servers have ended. */
  refresh(): Promise<void>;
}

const COOKIE = 'tributary_session';
/** How soon a server learns that a session was ended on another. */
const REFRESH_MS = 2000;

export function createAccess(state: Queryable, options: AccessOptions, now: () => number = Date.now): Access {
  const { basePath = '', onlyLoopbackNames = false } = options;
  let all = options.tokens;
  let ended = new Set<string>();
  let refreshedAt = 0;
  const listeners: Array<() => void> = [];
  const tellAll = (): void => {
    for (const listener of listeners) listener();
  };
  const tokens = (): Token[] => all.filter(({ expiresAt }) => (expiresAt ?? Number.POSITIVE_INFINITY) > now());
  const sessions = createSessions({ tokens, isEnded: (digest) => ended.has(digest) }, now);

  const refresh = async (): Promise<void> => {
    refreshedAt = now();
    const stored = await readEndedSessions(state);
    const isNews = [...stored].some((digest) => !ended.has(digest));
    ended = new Set([...ended, ...stored]);
    if (isNews) tellAll();
  };
  /** Recovery: what was known before still holds, and the next look asks again. */
  const refreshSoon = (): void => {
    if (now() - refreshedAt > REFRESH_MS) refresh().catch(() => {});
  };
  /** Every token is compared, so that the time does not tell which one was nearly right. */
  const tokenOf = (given: string): Token | undefined => tokens().filter(({ secret }) => isSame(given, secret))[0];
  const visitorOf = ({ name, role }: Token, session?: Session): Visitor => ({ name, role, session });
  const sessionOf = (cookie: string | undefined): Session | undefined => {
    refreshSoon();
    return sessions.read(cookie);
  };

  const cookieText = (value: string, maxAge: number, isSecure: boolean): string =>
    `${COOKIE}=${value}; Path=${basePath}/; HttpOnly; SameSite=Strict; Max-Age=${maxAge}${isSecure ? '; Secure' : ''}`;

  return {
    identify(headers) {
      const bearer = /^Bearer +(.+)$/i.exec(headers.authorization ?? '')?.[1];
      if (bearer !== undefined) {
        const token = tokenOf(bearer);
        return token ? visitorOf(token) : 'wrong';
      }
      const session = sessionOf(cookieOf(headers));
      return session && visitorOf(session.token, session);
    },
    checkSite(headers) {
      // `none`: typed by a person. Absent: no browser, or an address without TLS, where the strict cookie keeps others out.
      if (['same-origin', 'none'].includes(siteOf(headers))) return;
      throw new HttpError(403, 'a page of another site asked for this', {
        next: 'open it from the page of this server',
      });
    },
    checkHost(headers) {
      if (!onlyLoopbackNames || isLoopback(hostName(headers.host ?? ''))) return;
      throw new HttpError(403, 'this server answers only to localhost', {
        next: 'open it as http://localhost or http://127.0.0.1, or set http.token to use other names',
      });
    },
    checkChange(headers, { session }) {
      if (!session) return;
      const given = String(headers['x-csrf-token'] ?? '');
      if (siteOf(headers) === 'same-origin' && isSame(given, sessions.csrfOf(session))) return;
      throw new HttpError(403, 'the CSRF token is missing or old', {
        kept: 'nothing was changed',
        next: 'ask GET /api/session for the token, and send it in the header x-csrf-token',
      });
    },
    signIn(secret, isSecure) {
      const token = tokenOf(secret);
      if (!token) return undefined;
      const value = sessions.open(token);
      const visitor = visitorOf(token, sessions.read(value));
      return { cookie: cookieText(value, SESSION_HOURS * 3600, isSecure), visitor };
    },
    async signOut({ id, expiresAt }, isSecure) {
      ended.add(digestOf(id));
      tellAll();
      await endSession(state, digestOf(id), expiresAt);
      return cookieText('', 0, isSecure);
    },
    csrfOf: ({ session }) => (session ? sessions.csrfOf(session) : null),
    holds({ name, session }) {
      refreshSoon();
      const token = tokens().find((one) => one.name === name);
      if (!token || !session) return token !== undefined;
      return session.token.secret === token.secret && session.expiresAt > now() && !ended.has(digestOf(session.id));
    },
    replaceTokens(tokens) {
      all = tokens;
      tellAll();
    },
    onChange: (listener) => void listeners.push(listener),
    refresh,
  };
}

export const mayDo = (visitor: Visitor, role: Role): boolean => ROLES.indexOf(visitor.role) >= ROLES.indexOf(role);

/** Refuses to serve others than this machine with a token that nobody chose: whoever runs it there must be able to hand it out. */
export function checkBinding({
  host,
  token,
  tokens,
}: {
  host: string;
  token?: string | undefined;
  tokens?: object;
}): void {
  if (token !== undefined || Object.keys(tokens ?? {}).length > 0 || isLoopback(host)) return;
  throw new ConfigError(`http.host is ${host}, which others can reach, and there is no http.token`, {
    kept: 'nothing was started',
    next: 'set http.token to a long random text (openssl rand -hex 32 makes one), or http.host to 127.0.0.1',
  });
}

/** 127.0.0.0/8, ::1 and localhost. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));

/** The name in a Host header, without its port. */
const hostName = (host: string): string =>
  host
    .toLowerCase()
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1');

/** Where the page is from that asks, as the browser says it. */
const siteOf = (headers: IncomingHttpHeaders): string => String(headers['sec-fetch-site'] ?? 'same-origin');

const cookieOf = ({ cookie = '' }: IncomingHttpHeaders): string | undefined =>
  cookie
    .split(/; */)
    .find((pair) => pair.startsWith(`${COOKIE}=`))
    ?.slice(COOKIE.length + 1);

/**
 * Sessions of browsers: a cookie that says until when and for which token, signed with a key that is derived from that token. No session
 * is stored, so a restart signs nobody out and several servers know each other's sessions; another token ends those of the one before.
 * Only that a session was ended early is stored.
 */
interface Sessions {
  /** The value of a new cookie. */
  open(token: Token): string;
  /** Undefined: forged, expired, ended, or of a token that is no longer in use. */
  read(cookie: string | undefined): Session | undefined;
  /** Proves that a change was asked for by our own page: other sites can send the cookie, but cannot know this. */
  csrfOf(session: Session): string;
}

export interface Session {
  id: string;
  token: Token;
  expiresAt: number;
}

export const SESSION_HOURS = 12;

export function createSessions(
  { tokens, isEnded }: { tokens: () => readonly Token[]; isEnded: (digest: string) => boolean },
  now: () => number = Date.now,
): Sessions {
  const keys = new Map<string, Buffer>();
  /** By scrypt, so that a cookie is no quick way to try tokens against. It takes long, and is done once for each token. */
  const keyOf = ({ secret }: Token): Buffer => {
    const key = keys.get(secret) ?? scryptSync(secret, 'tributary sessions', 32);
    keys.set(secret, key);
    return key;
  };
  const sign = (token: Token, text: string): string =>
    createHmac('sha256', keyOf(token)).update(text).digest('base64url');

  return {
    open(token) {
      const expiresAt = Math.min(now() + SESSION_HOURS * 3_600_000, token.expiresAt ?? Number.POSITIVE_INFINITY);
      const name = Buffer.from(token.name).toString('base64url');
      const id = `${expiresAt}.${randomBytes(16).toString('base64url')}.${name}`;
      return `${id}.${sign(token, `session ${id}`)}`;
    },
    read(cookie = '') {
      const [until = '', nonce = '', name = '', signature = ''] = cookie.split('.');
      const token = tokens().find((one) => one.name === Buffer.from(name, 'base64url').toString());
      const id = `${until}.${nonce}.${name}`;
      if (!token || !isSame(signature, sign(token, `session ${id}`))) return undefined;
      const expiresAt = Number(until);
      return expiresAt > now() && !isEnded(digestOf(id)) ? { id, token, expiresAt } : undefined;
    },
    csrfOf: ({ id, token }) => sign(token, `csrf ${id}`),
  };
}

/** What may be stored of a session: it opens nothing. */
export const digestOf = (id: string): string => createHash('sha256').update(id).digest('base64url');
