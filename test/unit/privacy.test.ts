import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createFlatten } from '../../src/model/flatten.ts';
import { DEFAULT_PRIVACY, type Privacy, TREATMENTS, type Treatment, treat } from '../../src/model/privacy.ts';
import { STREAMS } from '../../src/model/streams.ts';

const SALT = 'a salt of the tests';
const hashed = (text: string): string => createHmac('sha256', SALT).update(text).digest('hex');

/** A sale with these parts, flattened, by column name. */
function flat(record: object, privacy: Partial<Privacy>): Record<string, unknown> {
  const base = { timestamp: '2026-11-14T10:00:00Z', eventId: 'e1' };
  const row = createFlatten(STREAMS.sales, { ...DEFAULT_PRIVACY, salt: SALT, ...privacy })({ ...base, ...record });
  const columns = STREAMS.sales.columns.map((column, i) => [column.name, row.values[i]]);
  return { ...Object.fromEntries(columns), _extra: row.extra };
}

describe('addresses truncated to their network', () => {
  it.each<[string, string | null]>([
    ['203.0.113.189', '203.0.113.0'],
    ['10.0.0.1', '10.0.0.0'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::'],
    ['2001:0DB8:0001::5', '2001:db8:1::'],
    ['2001:db8::5', '2001:db8::'],
    ['::1', '::'],
    ['::', '::'],
    ['1::', '1::'],
    ['fe80::1%eth0', 'fe80::'],
    ['1:2:3:4:5:6:7:8%a::b', '1:2:3::'],
    ['0:0:1::5', '0:0:1::'],
    ['::ffff:203.0.113.189', '203.0.113.0'],
    ['::FFFF:cb00:71bd', '203.0.113.0'],
    ['64:ff9b:1:0:0:0:203.0.113.189', '64:ff9b:1::'],
    ['203.0.113.189:443', null],
    ['203.0.113', null],
    ['unknown', null],
  ])('%s', (ip, network) => {
    expect(treat(ip, 'truncate')).toBe(network);
  });
});

describe('treatments', () => {
  it.each<[Treatment, unknown]>([
    ['keep', '203.0.113.189'],
    ['drop', null],
    ['hash', hashed('203.0.113.189')],
    ['truncate', '203.0.113.0'],
  ])('ip: %s, in both of its columns', (ip, value) => {
    for (const record of [{ click: { ip: '203.0.113.189' } }, { ip: '203.0.113.189' }]) {
      const row = flat(record, { ip });
      expect([row.click_ip, row.ip]).toEqual([value, value]);
      expect(row._extra).toBeNull();
    }
  });

  it.each<[Treatment, (text: string) => unknown]>([
    ['keep', (text) => text],
    ['drop', () => null],
    ['hash', hashed],
  ])('customer: %s', (customer, expected) => {
    const row = flat(
      { customer: { id: 'cus_1', name: 'Ada', email: 'ada@x.test', avatar: 'https://a' } },
      { customer },
    );
    expect(row.customer_id).toBe('cus_1');
    expect(row.customer_name).toBe(expected('Ada'));
    expect(row.customer_email).toBe(expected('ada@x.test'));
    expect(row.customer_avatar).toBe(expected('https://a'));
  });

  it.each<[Treatment, unknown]>([
    ['drop', null],
    ['keep', 'secret'],
    ['hash', hashed('secret')],
  ])('linkPassword: %s', (linkPassword, value) => {
    expect(flat({ link: { password: 'secret' } }, { linkPassword }).link_password).toBe(value);
  });

  it('a hash depends on the salt, and requires one', () => {
    expect(treat('10.0.0.1', 'hash', SALT)).not.toBe(treat('10.0.0.1', 'hash', `${SALT}!`));
    expect(() => treat('10.0.0.1', 'hash')).toThrow('needs a salt');
  });

  it('an absent value stays absent', () => {
    for (const treatment of ['keep', 'drop', 'hash', 'truncate'] as const) {
      expect(treat(null, treatment, SALT)).toBeNull();
      expect(treat('', treatment, SALT)).toBe('');
    }
  });

  it('the default drops the password only', () => {
    expect(DEFAULT_PRIVACY).toEqual({ linkPassword: 'drop', ip: 'keep', customer: 'keep' });
    expect(TREATMENTS.linkPassword[0]).toBe('drop');
    expect(TREATMENTS.customer).not.toContain('truncate');
  });
});

describe('fields without a column are treated too', () => {
  const HIDE: Partial<Privacy> = { ip: 'truncate', customer: 'hash' };

  it.each<[string, object]>([
    ['a password as an object', { link: { password: { plain: 'secret' } } }],
    ['a link as a list', { link: [{ password: 'secret' }] }],
    ['a link as text', { link: '{"password":"secret"}' }],
    ['a link in a list of texts', { link: ['password=secret'] }],
    ['a password deeper inside', { link: { access: { rules: [{ password: 'secret' }] } } }],
    ['a password at the top', { password: 'secret' }],
    ['a password under its column name', { link_password: 'secret', linkPassword: 'secret' }],
    ['an unknown object with a password', { previousLink: { password: 'secret' } }],
    ['a type mismatch with a password inside', { link: { title: { password: 'secret' } } }],
    ['an ip as an object', { click: { ip: { v4: 'secret' } } }],
    ['a click as a list', { click: [{ ip: 'secret' }] }],
    ['a contradicting alias', { click: { ip: '10.0.0.1' }, ip: 'secret' }],
    ['a customer as a list', { customer: [{ name: 'secret' }] }],
    ['a customer as text', { customer: 'secret' }],
    ['a name as a list', { customer: { name: ['secret'] } }],
    ['unknown fields of a customer', { customer: { phone: 'secret' } }],
    ['a password under another name', { link: { passwordPlain: 'secret', old_password: 'secret', passwd: 'secret' } }],
    ['an ip under another name', { click: { ipAddress: 'secret', ip_v4: 'secret' }, clientIp: 'secret' }],
    ['an e-mail address at the top', { email: 'secret', more: { emailAddress: 'secret' } }],
    ['a customer spread over the top', { customer_email: 'secret', customerName: 'secret' }],
  ])('%s', (_shape, record) => {
    expect(JSON.stringify(flat(record, HIDE))).not.toContain('secret');
  });

  it('other fields are unchanged', () => {
    const link = {
      id: 'l1',
      folder: { name: 'ads', password: 'secret' },
      note: 'reset your password',
      hasPassword: true,
    };
    const { _extra } = flat({ link, click: { ua: 'curl', zip: '1' }, more: ['ip', { ok: true, ship: 2 }] }, HIDE);
    expect(_extra).toEqual({
      link: { folder: { name: 'ads' }, note: 'reset your password', hasPassword: true },
      click: { ua: 'curl', zip: '1' },
      more: ['ip', { ok: true, ship: 2 }],
    });
  });

  it('the setting keep keeps everything', () => {
    const keep: Privacy = { linkPassword: 'keep', ip: 'keep', customer: 'keep' };
    const record = { link: [{ password: 'secret' }], customer: { phone: '1' }, password: 'secret' };
    expect(flat(record, keep)._extra).toEqual(record);
  });
});

it('the identity of an event does not depend on privacy settings', () => {
  const record = {
    timestamp: '2026-11-14T10:00:00Z',
    click: { id: 'c', ip: '10.0.0.1' },
    customer: { id: 'x', name: 'A' },
  };
  const ids = (['keep', 'drop', 'hash', 'truncate'] as const).map(
    (ip) => createFlatten(STREAMS.leads, { linkPassword: 'drop', ip, customer: 'keep', salt: SALT })(record).id,
  );
  expect(new Set(ids).size).toBe(1);
});
