import { describe, expect, it } from 'vitest';
import { BadRecord } from '../../src/model/errors.ts';
import { createFlatten } from '../../src/model/flatten.ts';
import { stringifyJson } from '../../src/model/json.ts';
import { createRedact, DEFAULT_PRIVACY, type Privacy } from '../../src/model/privacy.ts';
import { STREAMS } from '../../src/model/streams.ts';

/** An unusable record, as quarantined. */
function remains(record: unknown, privacy: Partial<Privacy> = {}): unknown {
  try {
    createFlatten(STREAMS.leads, { ...DEFAULT_PRIVACY, salt: 'a salt of the tests', ...privacy })(record);
  } catch (error) {
    if (error instanceof BadRecord) return error.remains;
    throw error;
  }
  throw new Error('the record was usable');
}

const plain = (value: unknown): unknown => JSON.parse(stringifyJson(value));

const LEAD = {
  eventName: 'Sign up',
  click: { id: 'c1', ip: '203.0.113.9' },
  ip: '203.0.113.9',
  link: { id: 'l1', password: 'hunter2' },
  customer: { id: 'cus_1', name: 'Ada', email: 'ada@x.test', avatar: 'https://a', country: 'DE', phone: '+49' },
};

describe('a quarantined record', () => {
  it('is kept unchanged except for the password', () => {
    expect(plain(remains(LEAD))).toEqual({ ...LEAD, link: { id: 'l1', password: '(left out)' } });
  });

  it.each(['drop', 'hash', 'truncate'] as const)('contains no ip if ip is %s', (ip) => {
    const kept = remains(LEAD, { ip });
    expect(stringifyJson(kept)).not.toContain('203.0.113');
    expect(kept).toMatchObject({ click: { id: 'c1', ip: '(left out)' }, customer: { name: 'Ada' } });
  });

  it.each(['drop', 'hash'] as const)('contains as much of a customer as the tables if customer is %s', (customer) => {
    const kept = plain(remains(LEAD, { customer })) as typeof LEAD;
    expect(kept.customer).toEqual({
      id: 'cus_1',
      country: 'DE',
      ...Object.fromEntries(['name', 'email', 'avatar', 'phone'].map((key) => [key, '(left out)'])),
    });
    expect(kept.click.ip).toBe('203.0.113.9');
  });

  it.each<[string, unknown]>([
    ['a customer in a list', { customer: [{ id: 'cus_1', name: 'SECRET' }, 'SECRET'] }],
    ['a customer as text', { customer: 'SECRET' }],
    ['an object as id', { customer: { id: { name: 'SECRET' } } }],
    ['a deeply nested customer', { data: { events: [{ customer: { email: 'SECRET' } }] } }],
    ['an e-mail address at the top', { email: 'SECRET' }],
    ['a click as text', { click: 'id=c1&ip=SECRET' }],
    ['a click as JSON in text', { body: '{"click":{"ip":"SECRET"}}' }],
    ['JSON in JSON in text', { body: '"{\\"customer\\":{\\"name\\":\\"SECRET\\"}}"' }],
    ['text alone', 'password SECRET'],
    ['a list of texts', ['ip: SECRET']],
    ['a password within text', { note: 'passwd: SECRET' }],
  ])('is redacted in every form: %s', (_shape, record) => {
    expect(stringifyJson(remains(record, { ip: 'drop', customer: 'drop' }))).not.toContain('SECRET');
  });

  it('never contains a password, whatever the settings', () => {
    const keep: Privacy = { linkPassword: 'keep', ip: 'keep', customer: 'keep' };
    expect(plain(createRedact(keep)(LEAD))).toEqual({ ...LEAD, link: { id: 'l1', password: '(left out)' } });
  });

  it('can always be serialized', () => {
    let deep: unknown = 'bottom';
    for (let level = 0; level < 20_000; level++) deep = level % 2 ? [deep] : { down: deep };
    expect(stringifyJson(remains({ eventId: 'e', deep }))).toMatch(/^\{"eventId":"e","deep":.*too deep/);
    const proto = remains(JSON.parse('{"__proto__":{"admin":true}}'));
    expect(stringifyJson(proto)).toBe('{"__proto__":{"admin":true}}');
  });
});
