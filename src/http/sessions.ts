import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/**
 * Sessions of browsers: a cookie that says until when, signed with a key that only the server has. Nothing is stored, so a
 * restart signs nobody out and several servers with one token know each other's sessions; another token ends them all.
 */
export interface Sessions {
  /** The value of a new cookie. */
  open(): string;
  /** The id of a session that holds; undefined for anything else. */
  read(cookie: string | undefined): string | undefined;
  /** Signed out: the cookie is worth nothing any more, whoever kept it. */
  end(id: string): void;
  /** Proves that a change was asked for by our own page: other sites can send the cookie, but cannot know this. */
  csrfOf(id: string): string;
}

export const SESSION_HOURS = 12;

/** The id of those who need no session, because anybody may read. */
export const NOBODY = 'nobody';

export function createSessions(secret: string | undefined, now: () => number = Date.now): Sessions {
  // Without a token there is nothing to be secret about; the CSRF token still must not be guessed.
  const key = createHmac('sha256', 'tributary sessions')
    .update(secret ?? randomBytes(32))
    .digest();
  const sign = (text: string): string => createHmac('sha256', key).update(text).digest('base64url');
  const ended = new Map<string, number>();

  return {
    open() {
      const id = `${now() + SESSION_HOURS * 3_600_000}.${randomBytes(16).toString('base64url')}`;
      return `${id}.${sign(`session ${id}`)}`;
    },
    read(cookie = '') {
      const [until = '', nonce = '', signature = ''] = cookie.split('.');
      const id = `${until}.${nonce}`;
      if (!isSame(signature, sign(`session ${id}`))) return undefined;
      return Number(until) > now() && !ended.has(id) ? id : undefined;
    },
    end(id) {
      for (const [each, until] of ended) if (until <= now()) ended.delete(each);
      ended.set(id, Number(id.split('.')[0]));
    },
    csrfOf: (id) => sign(`csrf ${id}`),
  };
}

/** In a time that does not tell how much of it was right: both are hashed first, so not even the length shows. */
export function isSame(given: string, wanted: string): boolean {
  const digest = (text: string): Buffer => createHmac('sha256', 'tributary compare').update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
