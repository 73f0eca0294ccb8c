import { describe, expect, it } from 'vitest';
import { checkFiltered, doubtOf } from '../../src/api/check-filtered.ts';
import { FILTERS } from '../../src/api/filters.ts';
import { createFlatten, type Row } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';

const flatten = createFlatten(STREAMS.clicks);
let ids = 0;
const click = (fields: object, link: object = {}) =>
  flatten({
    event: 'click',
    timestamp: '2026-11-01T10:00:00Z',
    click: { id: `c${ids++}`, timestamp: '2026-11-01T10:00:00Z', ...fields },
    link: { id: 'l1', domain: 'a.link', key: 'k', externalId: 'mine', tags: [{ id: 't1' }], ...link },
  });
const check = (filters: Record<string, string>, ...rows: Row[]) => checkFiltered(STREAMS.clicks, filters, rows);

describe('the check of rows against their filters', () => {
  it.each<[Record<string, string>, ...Row[]]>([
    [{ country: 'US,CA' }, click({ country: 'CA' }), click({ country: 'US' })],
    [{ country: '-US,-CA' }, click({ country: 'DE' }), click({ country: 'FR' })],
    [{ device: 'mobile' }, click({ device: 'Mobile' })],
    [{ externalId: 'ext_mine' }, click({})],
    [{ tagId: 't1' }, click({})],
    [{ domain: 'a.link', key: 'k' }, click({})],
    [{ qr: 'true' }, click({ qr: true })],
    [{ url: 'https://x.example' }, click({ url: 'https://x.example?utm=1' }, { url: 'https://x.example' })],
    [{ trigger: 'link' }, click({})],
  ])('accepts rows that match %j', (filters, ...rows) => {
    const found = check(filters, ...rows);
    expect(found).toMatchObject({ rows: rows.length, broken: [], hidden: [] });
    expect(doubtOf(found)).toBeUndefined();
  });

  it.each<[Record<string, string>, string, ...Row[]]>([
    [{ country: 'US' }, 'de', click({ country: 'US' }), click({ country: 'DE' })],
    [{ country: '-US,-CA' }, 'ca', click({ country: 'CA' }), click({ country: 'DE' })],
    [{ tagId: 't2' }, 't1', click({})],
    [{ tagId: 't2' }, 'none', click({}, { tags: [] })],
    [{ utm_source: 'news' }, 'none', click({})],
    [{ folderId: 'f1' }, 'f2', click({}, { folderId: 'f2' })],
  ])('reports rows that do not match %j: a row has %s', (filters, got, ...rows) => {
    const found = check(filters, ...rows);
    expect(found).toMatchObject({ broken: [{ name: Object.keys(filters)[0], got }] });
    expect(doubtOf(found)).toContain(`: it showed an event with "${got}"`);
  });

  it('reports values that no row has, page by page', () => {
    const filters = { country: 'US,CA,FR' };
    const first = check(filters, click({ country: 'US' }));
    expect(first.unseen).toEqual([
      { name: 'country', value: 'CA' },
      { name: 'country', value: 'FR' },
    ]);
    const second = checkFiltered(STREAMS.clicks, filters, [click({ country: 'FR' }), click({ country: 'DE' })], first);
    expect(second).toMatchObject({ rows: 3, unseen: [{ name: 'country', value: 'CA' }] });
  });

  it('doubts a filter without any event', () => {
    expect(doubtOf(check({ country: 'GB' }))).toContain('no event at all came for country=GB');
    expect(doubtOf(check({ country: '-GB' }))).toBeUndefined();
  });

  it('reports filters that rows cannot confirm', () => {
    expect(check({ groupId: 'g', partnerTagId: 'p', root: 'true' }, click({})).hidden).toEqual([
      'groupId',
      'partnerTagId',
      'root',
    ]);
    const names = new Set(Object.values(STREAMS).flatMap(({ columns }) => columns.map(({ name }) => name)));
    for (const { columns = [] } of FILTERS) for (const column of columns) expect(names).toContain(column);
  });
});
