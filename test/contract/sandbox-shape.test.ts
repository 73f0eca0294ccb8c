import { beforeAll, describe, expect, test } from 'vitest';
import { parseInstant } from '../../src/model/instant.ts';
import { STREAM_NAMES } from '../../src/model/streams.ts';
import type { Json, JsonObject } from '../../src/sandbox/data/types.ts';
import type { Sandbox } from '../../src/sandbox/server.ts';
import { type ContractRow, contractTable } from '../support/contract.ts';
import { parseTraits } from '../support/odd-service/traits.ts';
import { at, plainSandbox, rows, smallSandbox } from '../support/sandbox.ts';

const CLICK_EVENT = contractTable('Click event (`event` = `click`)');
const LEAD_EVENT = contractTable('Lead event (`event` = `lead`)');
const CLICK_OBJECT = contractTable('Click object');
const LINK_OBJECT = contractTable('Link object');

const FIELDS_BEYOND_CONTRACT = {
  leads: ['customer'],
  sales: ['customer', 'sale', 'saleAmount', 'invoice_id', 'payment_processor'],
};

let sandbox: Sandbox;
let clicks: JsonObject[];
let leads: JsonObject[];
let sales: JsonObject[];
beforeAll(async () => {
  sandbox = await plainSandbox();
  clicks = await rows(sandbox);
  leads = await rows(sandbox, { event: 'leads' });
  sales = await rows(sandbox, { event: 'sales' });
});

const names = (table: ContractRow[]): string[] => table.map((row) => row.Field ?? '').sort();
const aliasNames = CLICK_EVENT.filter((row) => row.Notes?.startsWith('deprecated')).map((row) => row.Field ?? '');

/** The type column of the contract, as a check of a value. */
function isOfType(value: Json | undefined, type: string): boolean {
  if (/^array/.test(type)) return Array.isArray(value);
  if (/^object/.test(type)) return typeof value === 'object' && value !== null && !Array.isArray(value);
  if (/URI/.test(type)) return typeof value === 'string' && URL.canParse(value);
  if (/type unspecified/.test(type)) return value !== undefined;
  return typeof value === type.split(',')[0];
}

function expectField(
  records: JsonObject[],
  path: string,
  type: string,
  { nullable = false, optional = false } = {},
): void {
  const values = records.map((record) => at(record, path));
  const odd = values.filter((value) => {
    if (value === null) return !nullable;
    if (value === undefined) return !optional;
    return !isOfType(value, type);
  });
  expect(odd, `${path} is not ${type}`).toEqual([]);
  expect(
    values.some((value) => value !== null && value !== undefined),
    `${path} never has a value`,
  ).toBe(true);
}

describe('click event', () => {
  test.each(CLICK_EVENT)('$Field: $Type', ({ Field = '', Type = '', Notes = '' }) => {
    expectField(clicks, Field, Type);
    const canonical = /use `(.+)`/.exec(Notes)?.[1];
    if (canonical) {
      for (const record of clicks) {
        const value = at(record, canonical);
        expect(record[Field]).toBe(typeof value === 'boolean' ? Number(value) : value);
      }
    }
  });

  test('has no other fields', () => {
    for (const record of clicks) expect(Object.keys(record).sort()).toEqual(names(CLICK_EVENT));
  });

  test('event is the constant click and the timestamp is that of the click, with milliseconds', () => {
    for (const record of clicks) {
      expect(record.event).toBe('click');
      expect(record.timestamp).toBe(at(record, 'click.timestamp'));
    }
    expect(clicks.filter((record) => (parseInstant(record.timestamp) ?? 0) % 1000 !== 0).length).toBeGreaterThan(800);
  });
});

describe('lead event', () => {
  test.each(LEAD_EVENT)('$Field: $Type', ({ Field = '', Type = '' }) => {
    expectField(leads, Field, Type, { nullable: Type.includes('nullable') });
  });

  test('carries customer and the aliases, and nothing else', () => {
    const expected = [...names(LEAD_EVENT), ...aliasNames, ...FIELDS_BEYOND_CONTRACT.leads].sort();
    for (const record of leads) expect(Object.keys(record).sort()).toEqual(expected);
  });

  test('refers to a click that is listed, and comes after it, in whole seconds', () => {
    const known = new Set(clicks.map((record) => at(record, 'click.id')));
    for (const record of leads) {
      expect(record.event).toBe('lead');
      expect(known.has(at(record, 'click.id'))).toBe(true);
      expect(parseInstant(record.timestamp)).toBeGreaterThan(parseInstant(at(record, 'click.timestamp')) ?? Number.NaN);
      expect((parseInstant(record.timestamp) ?? 1) % 1000).toBe(0);
    }
  });
});

describe('sale event', () => {
  test('has the shape of field note 20', () => {
    const expected = [...names(LEAD_EVENT), ...aliasNames, ...FIELDS_BEYOND_CONTRACT.sales].sort();
    for (const record of sales) {
      expect(Object.keys(record).sort()).toEqual(expected);
      const customer = Object.keys(record.customer as JsonObject).sort();
      expect(customer).toEqual(['avatar', 'country', 'createdAt', 'email', 'externalId', 'id', 'name']);
      const sale = Object.keys(record.sale as JsonObject).sort();
      expect(sale).toEqual(['amount', 'currency', 'invoiceId', 'paymentProcessor']);
      expect(record.saleAmount).toBe(at(record, 'sale.amount'));
      expect(record.invoice_id).toBe(at(record, 'sale.invoiceId'));
      expect(record.payment_processor).toBe(at(record, 'sale.paymentProcessor'));
      expect(Number.isInteger(record.saleAmount)).toBe(true);
    }
  });

  test('belongs to a customer who had a lead', () => {
    const known = new Set(leads.map((record) => at(record, 'customer.id')));
    for (const record of sales) {
      expect(known.has(at(record, 'customer.id'))).toBe(true);
      const since = parseInstant(at(record, 'customer.createdAt')) ?? Number.NaN;
      expect(parseInstant(record.timestamp)).toBeGreaterThanOrEqual(since);
    }
  });
});

describe.each(STREAM_NAMES)('click object of %s', (event) => {
  test.each(CLICK_OBJECT)('$Field: $Type', ({ Field = '', Type = '', Required = '' }) => {
    const records = sandbox.service.events(event);
    const loose = Required === 'no';
    expectField(records, `click.${Field}`, Type, { nullable: Type.includes('nullable'), optional: loose });
  });

  test('has no other fields', () => {
    for (const record of sandbox.service.events(event)) {
      expect(Object.keys(record.click as JsonObject).sort()).toEqual(names(CLICK_OBJECT));
    }
  });
});

describe('link object', () => {
  test.each(LINK_OBJECT)('$Field: $Type', ({ Field = '', Type = '', Nullable = '' }) => {
    const optional = Field === 'testVariants';
    // No generated link has a preview video; null is its whole life.
    if (Field === 'video') for (const record of clicks) expect(at(record, 'link.video')).toBeNull();
    else expectField(clicks, `link.${Field}`, Type, { nullable: Nullable === 'yes', optional });
  });

  test('has no other fields', () => {
    for (const record of [...clicks, ...leads, ...sales]) {
      const fields = Object.keys(record.link as JsonObject).filter((name) => name !== 'testVariants');
      expect(fields.sort()).toEqual(names(LINK_OBJECT).filter((name) => name !== 'testVariants'));
    }
  });

  test('testVariants hold 2 to 4 items of url and percentage 10 to 90', () => {
    const lists = clicks.map((record) => at(record, 'link.testVariants')).filter((list) => list !== undefined);
    expect(lists.length).toBeGreaterThan(0);
    for (const list of lists as JsonObject[][]) {
      expect(list.length).toBeGreaterThanOrEqual(2);
      expect(list.length).toBeLessThanOrEqual(4);
      for (const item of list) {
        expect(Object.keys(item).sort()).toEqual(['percentage', 'url']);
        expect(Number(item.percentage)).toBeGreaterThanOrEqual(10);
        expect(Number(item.percentage)).toBeLessThanOrEqual(90);
      }
    }
  });

  test('generated slugs have 7 characters, qrCode stands under the base address, tags are id, name, color', () => {
    for (const { link } of clicks as { link: JsonObject }[]) {
      if (link.key !== '_root') expect(link.key).toHaveLength(7);
      expect(link.qrCode).toBe(`${sandbox.baseUrl}/qr?url=${encodeURIComponent(String(link.shortLink))}`);
      for (const tag of link.tags as JsonObject[]) expect(Object.keys(tag).sort()).toEqual(['color', 'id', 'name']);
      expect(link.projectId).toBe(link.workspaceId);
    }
  });
});

test('reshaping traits reach every record of a page alike, though records share their links', async () => {
  const traits = parseTraits(['unknownFields', 'absentKeys', 'oldAliasesOnly', 'nulls']);
  const reshaped = await smallSandbox({ traits });
  const found = await rows(reshaped);
  const fieldsByLink = new Map<Json | undefined, Set<string>>();
  for (const record of found) {
    const fields = fieldsByLink.get(record.link_id) ?? new Set();
    fieldsByLink.set(
      record.link_id,
      fields.add(
        Object.keys(record.link as JsonObject)
          .sort()
          .join(),
      ),
    );
  }
  expect([...fieldsByLink.values()].filter((variants) => variants.size > 1)).toEqual([]);
});
