import { describe, expect, test } from 'vitest';
import { parseJson } from '../../src/model/json.ts';
import { STREAM_NAMES } from '../../src/model/streams.ts';
import type { JsonObject } from '../../src/sandbox/data/types.ts';
import { ask, at, plainSandbox, rows, sandboxWith } from '../support/sandbox.ts';

const ALIASES = 'click_id link_id domain key url continent country city device browser os qr ip'.split(' ');

describe('shape', () => {
  test('note 19, unknownFields', async () => {
    const sandbox = await sandboxWith(['unknownFields']);
    for (const event of STREAM_NAMES) {
      for (const row of await rows(sandbox, { event, limit: 20 })) {
        expect(at(row, 'click.ua')).toBeTypeOf('string');
        expect(at(row, 'link.utmId')).toBeTypeOf('string');
        expect(row.ingestedBy).toBeTypeOf('object');
      }
    }
  });

  test('note 19, unknownEnums', async () => {
    const sandbox = await sandboxWith(['unknownEnums']);
    const triggers = new Set((await rows(sandbox)).map((row) => at(row, 'click.trigger')));
    expect(triggers).toEqual(new Set(['link', 'qr', 'pageview', 'deeplink']));
  });

  test('note 19, nulls where the contract says required', async () => {
    const sandbox = await sandboxWith(['nulls']);
    const found = await rows(sandbox);
    for (const field of ['expiresAt', 'disabledAt', 'testStartedAt', 'testCompletedAt', 'lastClicked']) {
      const values = found.map((row) => at(row, `link.${field}`));
      expect(values.filter((value) => value === null).length, field).toBeGreaterThan(0);
      expect(
        values.filter((value) => value === undefined),
        field,
      ).toEqual([]);
    }
  });

  test('note 19, absentKeys and emptyStrings', async () => {
    const sandbox = await sandboxWith(['absentKeys']);
    const bare = await rows(sandbox, { event: 'leads' });
    expect(bare.some((row) => !('metadata' in row))).toBe(true);
    expect(bare.some((row) => !('externalId' in (row.link as JsonObject)))).toBe(true);
    expect(bare.flatMap((row) => Object.values(row.link as JsonObject)).includes(null)).toBe(false);
    sandbox.service.traits = { emptyStrings: true };
    const empty = await rows(sandbox, { event: 'leads' });
    expect(empty.some((row) => at(row, 'link.externalId') === '')).toBe(true);
    expect(empty.some((row) => at(row, 'link.expiresAt') === '')).toBe(true);
    expect(empty.flatMap((row) => Object.values(row.link as JsonObject)).includes(null)).toBe(false);
  });

  test.each([
    ['full', ['customer', 'invoice_id', 'payment_processor', 'sale', 'saleAmount']],
    ['canonical', ['customer', 'sale']],
    ['flat', ['customer', 'invoice_id', 'payment_processor', 'saleAmount']],
    ['no-customer', ['invoice_id', 'payment_processor', 'sale', 'saleAmount']],
  ])('note 20, saleShape=%s', async (shape, expected) => {
    const sandbox = await sandboxWith([`saleShape=${shape}`]);
    const fields = ['sale', 'saleAmount', 'invoice_id', 'payment_processor', 'customer'];
    for (const row of await rows(sandbox, { event: 'sales' })) {
      expect(fields.filter((name) => name in row).sort()).toEqual(expected);
    }
    expect((await rows(sandbox, { event: 'leads', limit: 1 }))[0]).toHaveProperty('customer');
  });

  test('note 20, noAliases and oldAliasesOnly', async () => {
    const sandbox = await plainSandbox({ traits: { noAliases: true } });
    for (const event of STREAM_NAMES) {
      const [row = {}] = await rows(sandbox, { event, limit: 1 });
      expect(ALIASES.filter((name) => name in row)).toEqual([]);
      expect(at(row, 'click.id')).toBeTypeOf('string');
    }
    sandbox.service.traits = { oldAliasesOnly: true };
    for (const event of STREAM_NAMES) {
      const [row = {}] = await rows(sandbox, { event, limit: 1 });
      expect(ALIASES.filter((name) => !(name in row))).toEqual([]);
      for (const path of ['click.id', 'click.url', 'click.country', 'click.ip', 'link.id', 'link.key', 'sale.amount']) {
        expect(at(row, path), path).toBeUndefined();
      }
    }
  });

  test('note 20, contradict: on some rows an alias differs from its canonical field', async () => {
    const sandbox = await sandboxWith(['contradict=0.2']);
    const found = await rows(sandbox);
    const differ = found.filter((row) => row.country !== at(row, 'click.country'));
    expect(differ.length).toBeGreaterThan(100);
    expect(differ.length).toBeLessThan(300);
  });
});

describe('data that bites', () => {
  const page = async (event: string): Promise<string> => {
    const sandbox = await sandboxWith(['dirty'], { rows: { clicks: 5, leads: 5, sales: 5 } });
    return (await ask(sandbox, { event, limit: 1000 })).text();
  };

  test.each(STREAM_NAMES)('note 26, dirty %s', async (event) => {
    const text = await page(event);
    expect(text).toContain('\\u0000');
    expect(text).toContain('\\ud800');
    expect(text).toMatch(/[:,]9007199254740993[,}]/);
    expect(text).toContain('tab\\there\\nnewline\\r\\n\\\\. \\\\N back\\\\slash');
    const found = parseJson(text) as JsonObject[];
    expect(found.some((row) => at(row, 'click.ip') === '' && row.ip === '')).toBe(true);
    expect(found.some((row) => at(row, 'click.country') === 'Unknown' && row.country === 'Unknown')).toBe(true);
  });

  test.each(['leads', 'sales'])('note 26, metadata of dirty %s', async (event) => {
    const text = await page(event);
    expect(text).toContain('{"__proto__":{"admin":true}');
    const all = (parseJson(text) as JsonObject[]).map((row) => row.metadata);
    expect(all.some((value) => typeof value === 'string')).toBe(true);
    expect(all.some((value) => Array.isArray(value))).toBe(true);
    expect(
      all.some((value) => JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? String(v) : v)).length > 1_000_000),
    ).toBe(true);
    const depth = (value: unknown): number =>
      typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0;
    expect(Math.max(...all.map(depth))).toBe(60);
  });

  test('note 27, password: every link carries one in plain text', async () => {
    const sandbox = await sandboxWith(['password']);
    for (const event of STREAM_NAMES) {
      for (const row of await rows(sandbox, { event })) expect(at(row, 'link.password')).toMatch(/^secret-/);
    }
  });
});
