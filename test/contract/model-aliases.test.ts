import { describe, expect, it } from 'vitest';
import { STREAM_NAMES } from '../../src/model/streams.ts';
import {
  CLICK_EVENT,
  type ContractField,
  FIELDS,
  LINK_OBJECT,
  OBSERVED,
  sample,
  snake,
} from '../support/contract-fields.ts';
import { flat, recordWith } from '../support/flat.ts';

const deprecated = [...CLICK_EVENT, ...LINK_OBJECT].filter(({ use }) => use !== undefined);
const sales = OBSERVED.filter(({ use }) => use !== undefined);

/** The canonical field, its alias, and the columns of both. */
function pairOf(alias: ContractField): { canonical: ContractField; columns: [canonical: string, alias: string] } {
  const canonical = FIELDS.find(({ path }) => path === alias.use);
  if (!canonical) throw new Error(`${alias.path} is replaced by ${alias.use}, which is no field`);
  return { canonical, columns: [snake(canonical.path), snake(alias.path)] };
}

it('the contract deprecates 13 fields of the click event and 2 of the link', () => {
  expect(deprecated).toHaveLength(15);
});

describe.each([...deprecated, ...sales].map((alias) => [alias.path, alias.use, alias] as const))(
  '%s and %s',
  (path, _use, alias) => {
    const { canonical, columns } = pairOf(alias);
    const both = (row: ReturnType<typeof flat>): unknown[] => columns.map(row.get);
    const [old, current] = [sample(alias), sample(canonical)];
    const clean = { extra: null, contradictions: [], typeMismatches: [] };

    it.each(alias.streams)('canonical fills both columns on %s', (stream) => {
      const row = flat(stream, recordWith(stream, [canonical.path, current.sent]));
      expect(both(row)).toEqual([current.held, expectedAlias()]);
      expect(row).toMatchObject(clean);
    });

    it.each(alias.streams)('alias fills both columns on %s', (stream) => {
      const row = flat(stream, recordWith(stream, [path, old.sent]));
      const tags = path === 'link.tagId' ? [{ id: old.held }] : undefined;
      const asCanonical = path === 'qr' ? old.held === 1 : (tags ?? old.held);
      expect(both(row)).toEqual([asCanonical, snake(path) === columns[0] ? asCanonical : old.held]);
      expect(row).toMatchObject(clean);
    });

    it.each(alias.streams)('an empty canonical field leaves the word to the alias on %s', (stream) => {
      for (const none of [null, '', ...(path === 'link.tagId' ? [[]] : [])]) {
        const row = flat(stream, recordWith(stream, [canonical.path, none], [path, old.sent]));
        expect(row.get(columns[1])).toEqual(snake(path) === columns[0] ? row.get(columns[0]) : old.held);
        expect(row.get(columns[0])).not.toBeNull();
        expect(row).toMatchObject(clean);
      }
    });

    it.each(alias.streams)('a contradiction on %s is counted, canonical wins, the other is kept', (stream) => {
      const other = sample(alias, 2);
      const row = flat(stream, recordWith(stream, [canonical.path, current.sent], [path, other.sent]));
      expect(both(row)).toEqual([current.held, expectedAlias()]);
      expect(row.contradictions).toEqual([columns[0]]);
      const [first = '', second] = path.split('.');
      expect(row.extra).toEqual({ [first]: second === undefined ? other.sent : { [second]: other.sent } });
    });

    /** What the alias column holds when the canonical field spoke. */
    function expectedAlias(): unknown {
      if (path === 'qr') return 1;
      if (path === 'link.tagId') return 'link.tagId 1';
      return current.held;
    }
  },
);

describe('tags and the tag id, which differ in shape', () => {
  const tags = [{ id: 'a' }, { id: 'b' }];

  it.each(STREAM_NAMES)('on %s any of the tags may be the tag id', (stream) => {
    const row = flat(stream, recordWith(stream, ['link.tags', tags], ['link.tagId', 'b']));
    expect([row.get('link_tags'), row.get('link_tag_id')]).toEqual([tags, 'b']);
    expect(row).toMatchObject({ extra: null, contradictions: [] });
  });

  it('tags of a strange shape take nothing away from the tag id', () => {
    for (const strange of ['a,b', { id: 'a' }, [{ id: { deep: 1 } }], ['a']]) {
      const row = flat('clicks', recordWith('clicks', ['link.tags', strange], ['link.tagId', 'b']));
      expect([row.get('link_tags'), row.get('link_tag_id')]).toEqual([strange, 'b']);
      expect(row).toMatchObject({ extra: null, typeMismatches: [] });
    }
  });

  it('a tag id that is no text is counted and kept', () => {
    const row = flat('clicks', recordWith('clicks', ['link.tags', tags], ['link.tagId', { id: 'b' }]));
    expect(row).toMatchObject({ typeMismatches: ['link_tag_id'], extra: { link: { tagId: { id: 'b' } } } });
    expect(row.get('link_tag_id')).toBe('a');
  });
});

describe('values that do not fit', () => {
  it('a canonical type mismatch is kept and leaves the word to the alias', () => {
    const row = flat('clicks', recordWith('clicks', ['click.country', ['DE']], ['country', 'DE']));
    expect([row.get('click_country'), row.get('country')]).toEqual(['DE', 'DE']);
    expect(row).toMatchObject({
      typeMismatches: ['click_country'],
      extra: { click: { country: ['DE'] } },
      contradictions: [],
    });
  });

  it('qr: a number that is no boolean stays in its own column', () => {
    const row = flat('clicks', recordWith('clicks', ['qr', 2]));
    expect([row.get('click_qr'), row.get('qr')]).toEqual([null, 2]);
    expect(row).toMatchObject({ typeMismatches: ['click_qr'], extra: { qr: 2 } });
  });

  it('qr: what click.qr cannot say, it cannot say to the alias', () => {
    const row = flat('clicks', recordWith('clicks', ['click.qr', 7], ['qr', 1]));
    expect([row.get('click_qr'), row.get('qr')]).toEqual([true, 1]);
    expect(row.extra).toEqual({ click: { qr: 7 } });
  });
});
