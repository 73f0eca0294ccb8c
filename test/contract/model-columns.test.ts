import { describe, expect, it } from 'vitest';
import { columnName } from '../../src/model/columns.ts';
import { BOOKKEEPING, STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import { FIELDS } from '../support/contract-fields.ts';

/** DESIGN 5: these move on their own and never make a row "changed". */
const VOLATILE = [
  'link_clicks',
  'link_leads',
  'link_conversions',
  'link_sales',
  'link_sale_amount',
  'link_last_clicked',
  'link_updated_at',
];

const KINDS: Record<string, readonly string[]> = {
  string: ['text', 'timestamp'],
  number: ['integer'],
  boolean: ['boolean'],
  object: ['json'],
  array: ['json'],
  nullable: ['json'],
};

describe.each(STREAM_NAMES)('columns of %s', (stream) => {
  const { columns } = STREAMS[stream];
  const names = columns.map((column) => column.name);

  it('have unique names, together with the bookkeeping', () => {
    const all = [...names, ...BOOKKEEPING.map(({ name }) => name)];
    expect(new Set(all).size).toBe(all.length);
  });

  it('have names in snake_case that Postgres does not cut', () => {
    for (const name of names) {
      expect(name).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/);
      expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
    }
  });

  it('have a text for the data dictionary', () => {
    for (const { name, doc } of columns) expect(doc, name).toMatch(/^[A-Z].{2,}\.$/);
  });

  it('that are deprecated name the column to use, which stands before them and is not deprecated itself', () => {
    const deprecated = columns.filter((column) => column.deprecated !== undefined);
    expect(deprecated.length).toBeGreaterThanOrEqual(13);
    for (const column of deprecated) {
      const better = columns.findIndex(({ name }) => name === column.deprecated);
      expect(better, column.name).toBeGreaterThanOrEqual(0);
      expect(better).toBeLessThan(columns.indexOf(column));
      expect(columns[better]?.deprecated).toBeUndefined();
      expect(column.nullable).toBe(true);
    }
  });

  it('that are joined by the service are volatile, and what the event itself says is not', () => {
    const volatile = columns.filter((column) => column.volatile).map(({ name }) => name);
    expect(volatile).toEqual(expect.arrayContaining(VOLATILE));
    if (stream !== 'clicks') expect(volatile).toContain('customer_name');
    for (const name of names) {
      const joined = /^(link|customer)_(?!id$)/.test(name) || name === 'domain' || name === 'key';
      expect(volatile.includes(name), name).toBe(joined);
    }
  });

  it('that hold personal data say so, under both names', () => {
    const personal = columns.filter((column) => column.personal).map(({ name, personal: sort }) => [name, sort]);
    const customer = ['customer_name', 'customer_email', 'customer_avatar'].map((name) => [name, 'customer']);
    const expected = [
      ['click_ip', 'ip'],
      ['ip', 'ip'],
      ['link_password', 'linkPassword'],
    ];
    expect(new Set(personal.map(String))).toEqual(
      new Set([...expected, ...(stream === 'clicks' ? [] : customer)].map(String)),
    );
  });

  it('have kinds that the types of the contract allow', () => {
    for (const { path, type } of FIELDS.filter((field) => field.streams.includes(stream))) {
      const column = columns.find(({ name }) => name === columnName(path));
      expect(KINDS[/^[a-z]+/.exec(type)?.[0] ?? ''], path).toContain(column?.kind);
    }
  });

  it('are nullable, but for what makes a row', () => {
    const required = columns.filter((column) => !column.nullable).map(({ name }) => name);
    expect(required).toEqual(['event', 'timestamp', 'event_id']);
  });
});

it('bookkeeping starts with an underscore and is documented', () => {
  expect(BOOKKEEPING.map(({ name }) => name)).toEqual([
    '_source',
    '_extra',
    '_first_synced_at',
    '_synced_at',
    '_run_id',
    '_missing_since',
  ]);
  for (const { doc } of BOOKKEEPING) expect(doc).toMatch(/\.$/);
});
