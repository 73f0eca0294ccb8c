import { createHash, createHmac, randomBytes, scryptSync } from 'node:crypto';
import { isSame, type Token } from './tokens.ts';

/**
 * Sessions of browsers: a cookie that says until when and for which token, signed with a key that is derived from that token. No session
 * is stored, so a restart signs nobody out and several servers know each other's sessions; another token ends those of the one before.
 * Only that a session was ended early is stored.
 */
export interface Sessions {
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
