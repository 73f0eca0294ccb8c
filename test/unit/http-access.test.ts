import { describe, expect, it } from 'vitest';
import { checkBinding, createAccess, isLoopback } from '../../src/http/access.ts';
import { createSessions, SESSION_HOURS } from '../../src/http/sessions.ts';
import { createThrottle } from '../../src/http/throttle.ts';

const HOUR_MS = 3_600_000;

describe('sessions', () => {
  it('hold for twelve hours, also after a restart, and not with another token', () => {
    let now = Date.now();
    const sessions = createSessions('token', () => now);
    const cookie = sessions.open();
    const id = sessions.read(cookie);
    expect(id).toBeDefined();
    expect(createSessions('token', () => now).read(cookie)).toBe(id);
    expect(createSessions('other', () => now).read(cookie)).toBeUndefined();
    expect(createSessions('token', () => now).csrfOf(id ?? '')).toBe(sessions.csrfOf(id ?? ''));
    now += SESSION_HOURS * HOUR_MS;
    expect(sessions.read(cookie)).toBeUndefined();
  });

  it('cannot be made longer, or be made at all, by whoever lacks the key', () => {
    const sessions = createSessions('token');
    const [until = '', nonce, signature] = sessions.open().split('.');
    const forged = [
      `${Number(until) + HOUR_MS}.${nonce}.${signature}`,
      `${until}.x.${signature}`,
      `${until}.${nonce}.`,
      '',
      'a.b.c',
    ];
    expect(forged.map((cookie) => sessions.read(cookie))).toEqual(forged.map(() => undefined));
  });

  it('without a token every process has proofs of its own', () => {
    expect(createSessions(undefined).csrfOf('nobody')).not.toBe(createSessions(undefined).csrfOf('nobody'));
  });
});

describe('the throttle', () => {
  it('lets ten wrong tokens a minute through for each address, and counts no other', () => {
    let now = 0;
    const throttle = createThrottle(() => now);
    for (let i = 0; i < 10; i++) {
      expect(throttle.waitSeconds('a')).toBe(0);
      throttle.failed('a');
      now += 1000;
    }
    expect([throttle.waitSeconds('a'), throttle.waitSeconds('b')]).toEqual([50, 0]);
    now += 50_000;
    expect(throttle.waitSeconds('a')).toBe(0);
  });
});

describe('the door', () => {
  it('knows what this machine is', () => {
    const own = ['127.0.0.1', '127.8.9.1', 'localhost', '::1'];
    const others = ['0.0.0.0', '::', '10.0.0.1', '127.evil.example', 'localhost.evil.example', '127.0.0.1.nip.io', ''];
    expect(own.filter((host) => !isLoopback(host))).toEqual([]);
    expect(others.filter(isLoopback)).toEqual([]);
    for (const host of others) expect(() => checkBinding({ host, token: undefined })).toThrow(/http\.token/);
    expect(() => checkBinding({ host: '0.0.0.0', token: 'x' })).not.toThrow();
  });

  it('makes the cookie secure where a proxy speaks TLS', () => {
    const access = createAccess({ host: '127.0.0.1', token: 'token' });
    const cookieOf = (headers: Record<string, string>) => access.signIn({ headers, address: 'a' }, 'token').cookie;
    expect(cookieOf({ 'x-forwarded-proto': 'https' })).toMatch(/; Secure$/);
    expect(cookieOf({})).not.toMatch(/Secure/);
  });
});
