import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  checkBinding,
  createAccess,
  createSessions,
  digestOf,
  isLoopback,
  SESSION_HOURS,
} from '../../src/http/access.ts';
import { ownToken, type Token } from '../../src/http/tokens.ts';
import { ConfigError } from '../../src/model/errors.ts';

const HOUR_MS = 3_600_000;
const token = (secret: string, rest: Partial<Token> = {}): Token => ({ name: 'owner', role: 'admin', secret, ...rest });
const sessionsOf = (tokens: readonly Token[], now = Date.now, ended = new Set<string>()) =>
  createSessions({ tokens: () => tokens, isEnded: (digest) => ended.has(digest) }, now);

describe('sessions', () => {
  it('last for twelve hours, also after a restart, but not with another token or after signing out', () => {
    let now = Date.now();
    const [mine, other] = [token('mine'), token('other')];
    const sessions = sessionsOf([mine], () => now);
    const cookie = sessions.open(mine);
    const session = sessions.read(cookie);
    if (!session) throw new Error('it was just opened');
    expect(sessionsOf([mine], () => now).read(cookie)).toEqual(session);
    expect(sessions.read(`${cookie}.x`)).toBeUndefined();
    expect(sessionsOf([other], () => now).read(cookie)).toBeUndefined();
    expect(sessionsOf([mine], () => now, new Set([digestOf(session.id)])).read(cookie)).toBeUndefined();
    expect(sessionsOf([mine], () => now).csrfOf(session)).toBe(sessions.csrfOf(session));
    now += SESSION_HOURS * HOUR_MS;
    expect(sessions.read(cookie)).toBeUndefined();
  });

  it('end with their token', () => {
    let now = Date.now();
    const short = token('short', { expiresAt: now + HOUR_MS });
    const sessions = sessionsOf([short], () => now);
    const cookie = sessions.open(short);
    expect(sessions.read(cookie)?.expiresAt).toBe(short.expiresAt);
    now += HOUR_MS;
    expect(sessions.read(cookie)).toBeUndefined();
  });

  it('cannot be extended, moved to another token, or created without the key', () => {
    const [mine, reader] = [token('mine'), token('reader', { name: 'reader', role: 'read' })];
    const sessions = sessionsOf([mine, reader]);
    const [until = '', nonce, name, signature] = sessions.open(reader).split('.');
    const owner = sessions.open(mine).split('.')[2];
    const forged = [
      `${Number(until) + HOUR_MS}.${nonce}.${name}.${signature}`,
      `${until}.x.${name}.${signature}`,
      `${until}.${nonce}.${owner}.${signature}`,
      `${until}.${nonce}.${name}.`,
      '',
      'a.b.c.d',
    ];
    expect(forged.map((cookie) => sessions.read(cookie))).toEqual(forged.map(() => undefined));
  });
});

describe('the generated token', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'token-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('is created once, long, and readable by its owner only', async () => {
    const state = join(folder, '.tributary');
    const made = await ownToken(state);
    expect(made).toMatch(/^[0-9a-f]{64}$/);
    expect(await ownToken(state)).toBe(made);
    expect(readFileSync(join(state, 'http-token'), 'utf8').trim()).toBe(made);
    expect(statSync(join(state, 'http-token')).mode & 0o777).toBe(0o600);
    expect(statSync(state).mode & 0o777).toBe(0o700);
  });

  it('is refused if it is a link, readable by others, or short', async () => {
    const path = join(folder, 'http-token');
    writeFileSync(join(folder, 'elsewhere'), 'x'.repeat(64), { mode: 0o600 });
    symlinkSync(join(folder, 'elsewhere'), path);
    await expect(ownToken(folder)).rejects.toThrow(ConfigError);
    rmSync(path);
    writeFileSync(path, 'x'.repeat(64), { mode: 0o644 });
    await expect(ownToken(folder)).rejects.toThrow(/other users own it or can read it/);
    rmSync(path);
    writeFileSync(path, 'short', { mode: 0o600 });
    await expect(ownToken(folder)).rejects.toThrow(ConfigError);
  });

  it.runIf(process.getuid?.() === 0)("is not stored by root in another user's folder, nor behind a link", async () => {
    const state = join(folder, '.tributary');
    mkdirSync(state);
    chownSync(state, 65534, 65534);
    await expect(ownToken(state)).rejects.toThrow(/belongs to user 65534/);
    expect(readdirSync(state)).toEqual([]);
    rmSync(state, { recursive: true });
    symlinkSync(folder, state);
    await expect(ownToken(state)).rejects.toThrow(/is a link or not a folder/);
    expect(readdirSync(folder)).toEqual(['.tributary']);
  });
});

describe('access', () => {
  const nothingStored = { query: async () => [] };

  it('recognizes this machine', () => {
    const own = ['127.0.0.1', '127.8.9.1', 'localhost', '::1'];
    const others = ['0.0.0.0', '::', '10.0.0.1', '127.evil.example', 'localhost.evil.example', '127.0.0.1.nip.io', ''];
    expect(own.filter((host) => !isLoopback(host))).toEqual([]);
    expect(others.filter(isLoopback)).toEqual([]);
    for (const host of others) expect(() => checkBinding({ host, token: undefined })).toThrow(/http\.token/);
    expect(() => checkBinding({ host: '0.0.0.0', token: 'x' })).not.toThrow();
    expect(() => checkBinding({ host: '0.0.0.0', tokens: { grafana: {} } })).not.toThrow();
  });

  it('makes the cookie secure over TLS, and limits it to its own path', () => {
    const access = createAccess(nothingStored, { tokens: [token('secret')], basePath: '/etl' });
    expect(access.signIn('secret', true)?.cookie).toMatch(/; Path=\/etl\/; .*; Secure$/);
    expect(access.signIn('secret', false)?.cookie).not.toMatch(/Secure/);
  });

  it('revokes access by a token that has expired or was replaced', () => {
    let now = Date.now();
    const reader = token('reader-secret', { name: 'reader', role: 'read', expiresAt: now + HOUR_MS });
    const access = createAccess(nothingStored, { tokens: [token('mine'), reader] }, () => now);
    const who = (secret: string) => access.identify({ authorization: `Bearer ${secret}` });
    const [owner, guest] = [who('mine'), access.signIn('reader-secret', false)?.visitor];
    if (!owner || owner === 'wrong' || !guest) throw new Error('both are in');
    let changes = 0;
    access.onChange(() => {
      changes += 1;
    });
    expect([access.holds(owner), access.holds(guest)]).toEqual([true, true]);
    now += HOUR_MS;
    expect([access.holds(owner), access.holds(guest)]).toEqual([true, false]);
    access.replaceTokens([token('another', { name: 'other' })]);
    expect([changes, access.holds(owner), who('mine'), who('another')]).toEqual([
      1,
      false,
      'wrong',
      expect.objectContaining({ name: 'other' }),
    ]);
  });
});
