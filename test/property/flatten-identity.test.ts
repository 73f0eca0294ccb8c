import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFlatten } from '../../src/model/flatten.ts';
import { STREAM_NAMES, STREAMS, type StreamName } from '../../src/model/streams.ts';
import { FIELDS, sample } from '../support/contract-fields.ts';
import { anyJson, reordered } from '../support/odd-records.ts';

/** Events without an id are identified by a hash. It must never change, since stored rows depend on it. */

type Parts = Record<string, Record<string, unknown>>;

const METADATA = { plan: 'team', seats: { min: 1, max: [2, 3], '10': 'a', '9': 'b' } };

/** A full record of a stream without its id fields; variants have other values. */
function anonymous(stream: StreamName, changed?: string): Record<string, unknown> & Parts {
  const record: Record<string, unknown> = { event: STREAMS[stream].event };
  for (const field of FIELDS) {
    if (!field.streams.includes(stream) || field.use || field.path === 'eventId' || field.path === 'event') continue;
    if (stream === 'clicks' && field.path === 'click.id') continue;
    const [first = '', second] = field.path.split('.');
    const { sent } = sample(field, field.path === changed ? 2 : 1);
    if (second === undefined) record[first] = sent;
    else record[first] = { ...(record[first] as object), [second]: sent };
  }
  if ('metadata' in record && changed !== 'metadata') record.metadata = METADATA;
  return record as Record<string, unknown> & Parts;
}

const idOf = (stream: StreamName, record: unknown): string => createFlatten(STREAMS[stream])(record).id;

/** The fields of an event itself, and those joined to it. */
const CLICK = ['url', 'country', 'city', 'region', 'device', 'browser', 'os', 'trigger', 'refererUrl', 'qr', 'ip'];
const SALE = ['amount', 'invoiceId', 'currency', 'paymentProcessor'];
const INVARIANT: Record<StreamName, readonly string[]> = {
  clicks: ['timestamp', 'link.id', ...CLICK.map((key) => `click.${key}`)],
  leads: [
    'timestamp',
    'eventName',
    'metadata',
    'link.id',
    'customer.id',
    'click.id',
    ...CLICK.map((key) => `click.${key}`),
  ],
  sales: [
    'timestamp',
    'eventName',
    'metadata',
    'link.id',
    'customer.id',
    'click.id',
    ...SALE.map((key) => `sale.${key}`),
  ],
};

describe.each(STREAM_NAMES)('an event of %s without an id', (stream) => {
  const record = anonymous(stream);
  const id = idOf(stream, record);

  it('has an id that resembles none of a service', () => {
    expect(id).toMatch(/^h_[0-9a-f]{32}$/);
  });

  it('keeps its id when links and customers change', () => {
    const joined = fc.constantFrom('link', ...(stream === 'clicks' ? [] : ['customer']));
    const change = joined.chain((part) => {
      const keys = Object.keys(record[part] ?? {}).filter((key) => key !== 'id');
      return fc.tuple(fc.constant(part), fc.constantFrom(...keys, 'unknown'), anyJson);
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 20 }), (changes) => {
        const later: Record<string, unknown> & Parts = { ...record };
        for (const [part, key, value] of changes) later[part] = { ...later[part], [key]: value };
        expect(idOf(stream, later)).toBe(id);
      }),
    );
  });

  it('keeps its id when the keys are in another order', () => {
    expect(idOf(stream, reordered(record))).toBe(id);
  });

  it('keeps its id when deprecated names are used', () => {
    const aliases = FIELDS.filter((field) => field.use && field.streams.includes(stream));
    for (const { path, use = '' } of aliases) {
      const [part = '', key = ''] = use.split('.');
      const value = record[part]?.[key];
      if (value === undefined || path.includes('.')) continue;
      const { [key]: _moved, ...rest } = record[part] ?? {};
      const old = { ...record, [part]: rest, [path]: path === 'qr' ? Number(value) : value };
      expect(idOf(stream, old), path).toBe(id);
    }
  });

  it('keeps its id when empty fields are omitted', () => {
    if (stream === 'clicks') return;
    const { metadata: _left, ...without } = record;
    const ids = [without, ...[null, '', {}, []].map((none) => ({ ...record, metadata: none }))].map((one) =>
      idOf(stream, one),
    );
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).not.toBe(id);
  });

  it.each(INVARIANT[stream])('is another event when %s differs', (path) => {
    expect(idOf(stream, anonymous(stream, path))).not.toBe(id);
  });
});

it('stored ids do not change: these hashes are frozen', () => {
  const timestamp = '2026-11-14T10:00:00.123Z';
  expect(idOf('leads', { timestamp, eventName: 'Sign up', metadata: { b: 1, a: [2n ** 60n] }, click_id: 'c' })).toBe(
    'h_1b79cf0fcad4456b30d5735692d726fa',
  );
  expect(idOf('clicks', { timestamp, link: { id: 'l' }, country: 'DE', qr: 1 })).toBe(
    'h_1fb9fd842ea1ce8085a624199aafa6b8',
  );
});

it('events that cannot be told apart have no id', () => {
  expect(() => idOf('leads', { timestamp: 1_705_314_600, country: 'DE', metadata: { a: 1 } })).toThrow(/no identity/);
});
