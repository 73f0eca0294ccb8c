import { describe, expect, it } from 'vitest';
import { STREAM_NAMES, STREAMS } from '../../src/model/streams.ts';
import {
  CLICK_EVENT,
  CLICK_OBJECT,
  type ContractField,
  FIELDS,
  LEAD_EVENT,
  LINK_OBJECT,
  OBSERVED,
  sample,
  snake,
} from '../support/contract-fields.ts';
import { flat, recordWith } from '../support/flat.ts';
import { createSandboxService } from '../support/odd-service/service.ts';

const KEEP_ALL = { linkPassword: 'keep', ip: 'keep', customer: 'keep' } as const;

/** The field alone in a record, on every stream where it occurs. */
function landsInItsColumn(field: ContractField): void {
  for (const stream of field.streams) {
    const { sent, held } = sample(field);
    const row = flat(stream, recordWith(stream, [field.path, sent]), KEEP_ALL);
    expect(row.get(snake(field.path))).toEqual(held);
    expect(row).toMatchObject({ extra: null, contradictions: [], typeMismatches: [] });
  }
}

const named = (fields: readonly ContractField[]) => fields.map((field) => [field.path, field] as const);

describe('Click event', () => {
  it('has 17 fields', () => expect(CLICK_EVENT).toHaveLength(17));
  it.each(named(CLICK_EVENT.slice(4)))('%s', (_path, field) => landsInItsColumn(field));
});

describe('Lead event', () => {
  it('has 7 fields', () => expect(LEAD_EVENT).toHaveLength(7));
  it.each(named(LEAD_EVENT.slice(2, 5)))('%s', (_path, field) => landsInItsColumn(field));
});

describe('every event', () => {
  it.each(STREAM_NAMES)('event on %s: what came, else what the stream is', (stream) => {
    const { event } = STREAMS[stream];
    expect(flat(stream, recordWith(stream, ['event', event])).get('event')).toBe(event);
    expect(flat(stream, recordWith(stream, ['event', 'renamed'])).get('event')).toBe('renamed');
    for (const none of [null, '']) expect(flat(stream, recordWith(stream, ['event', none])).get('event')).toBe(event);
  });

  it.each(STREAM_NAMES)('timestamp on %s', (stream) => {
    const row = flat(stream, recordWith(stream, ['timestamp', '2026-11-14T10:00:00.123Z']));
    expect([row.at, row.get('timestamp')]).toEqual([Date.UTC(2026, 10, 14, 10, 0, 0, 123), row.at]);
  });

  it.each(STREAM_NAMES)('click and link on %s: null, "" and absent are the same', (stream) => {
    for (const none of [null, '']) {
      const row = flat(stream, recordWith(stream, ['click_id', 'c'], ['click', none], ['link', none]));
      expect(row).toMatchObject({ extra: null, typeMismatches: [] });
    }
  });

  it('click.timestamp stands in for the time of a click, and of nothing else', () => {
    const record = { click: { id: 'c', timestamp: '2026-11-14T10:00:00.123Z' }, eventId: 'e' };
    expect(flat('clicks', record).at).toBe(Date.UTC(2026, 10, 14, 10, 0, 0, 123));
    expect(() => flat('leads', record)).toThrow(/no time/);
  });

  it('the id: click.id of a click, eventId of the others', () => {
    const record = { timestamp: 1_700_000_000, eventId: 'e1', click: { id: 'c1' } };
    expect(flat('clicks', record)).toMatchObject({ id: 'c1', extra: { eventId: 'e1' } });
    for (const stream of ['leads', 'sales'] as const)
      expect(flat(stream, record)).toMatchObject({ id: 'e1', extra: null });
    for (const stream of STREAM_NAMES) expect(flat(stream, record).get('event_id')).toBe(flat(stream, record).id);
  });
});

describe('Click object', () => {
  it('has 15 fields', () => expect(CLICK_OBJECT).toHaveLength(15));
  it.each(named(CLICK_OBJECT))('%s', (_path, field) => landsInItsColumn(field));
});

describe('Link object', () => {
  it('has 51 fields', () => expect(LINK_OBJECT).toHaveLength(51));
  it.each(named(LINK_OBJECT))('%s', (_path, field) => landsInItsColumn(field));

  it('link.password is dropped unless somebody asks for it', () => {
    for (const stream of STREAM_NAMES) {
      const row = flat(stream, recordWith(stream, ['link.password', 'secret']));
      expect([row.get('link_password'), row.extra]).toEqual([null, null]);
    }
  });
});

describe('Sale event (observed)', () => {
  it.each(named(OBSERVED))('%s', (_path, field) => landsInItsColumn(field));
});

describe('the columns', () => {
  it.each(STREAM_NAMES)('of %s are the fields of the contract and those observed, and no others', (stream) => {
    const here = FIELDS.filter((field) => field.streams.includes(stream) || field.path === 'eventId');
    const names = STREAMS[stream].columns.map((column) => column.name);
    expect(new Set(names)).toEqual(new Set(here.map(({ path }) => snake(path))));
    const paths = STREAMS[stream].columns.flatMap((column) => column.from.map(({ path }) => path));
    expect(new Set(paths)).toEqual(new Set(here.map(({ path }) => path)));
  });
});

describe('a whole page of the sandbox', () => {
  const service = createSandboxService({ rows: { clicks: 200, leads: 100, sales: 100 } });

  it.each(STREAM_NAMES)('%s: columns take everything', (stream) => {
    for (const record of service.events(stream)) {
      expect(flat(stream, record)).toMatchObject({ extra: null, contradictions: [], typeMismatches: [] });
    }
  });
});

it('columns that the contract does not name say so, and no others', () => {
  const observed = new Set(OBSERVED.map(({ path }) => snake(path)));
  for (const stream of STREAM_NAMES) {
    const marked = STREAMS[stream].columns.filter(({ doc }) => doc.endsWith('Not in the contract.'));
    expect(marked.map(({ name }) => name)).toEqual(
      STREAMS[stream].columns.map(({ name }) => name).filter((name) => observed.has(name)),
    );
  }
});
