import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decode } from '../../src/api/answer.ts';
import { createRepeatedLinks } from '../../src/api/repeated-links.ts';
import { BadRecord } from '../../src/model/errors.ts';
import { createFlatten } from '../../src/model/flatten.ts';
import { parseJson, stringifyJson } from '../../src/model/json.ts';
import { STREAM_NAMES, STREAMS, type StreamName } from '../../src/model/streams.ts';
import { stable } from '../support/flat.ts';
import { anyJson, oddRecord } from '../support/odd-records.ts';

/** Links repeated on a page are parsed once; records and rows must equal those of a plain parse. */

const RECORDS = 120;
const PAD = 'x'.repeat(300);

/** A page of events that alternate between a few links; `recordOf` places the link among other fields. */
const pageOf = (links: readonly string[], recordOf: (link: string, i: number) => string = plain): Buffer =>
  Buffer.from(`[${Array.from({ length: RECORDS }, (_, i) => recordOf(links[i % links.length] ?? '', i)).join()}]`);
const plain = (link: string, i: number): string =>
  `{"event":"click","eventId":"e${i}","timestamp":"2026-11-14T10:00:00.000Z","pad":"${PAD}","link":${link},"key":"k"}`;
const linkOf = (fields: object): string => stringifyJson({ id: 'link_1', description: PAD, ...fields });

/** A page seen before, whose links are known. */
function parsed(page: Buffer): unknown[] | undefined {
  const parse = createRepeatedLinks();
  parse(page);
  return parse(page);
}

const plainParse = (page: Buffer): unknown => parseJson(decode(page));

describe('a page whose links repeat', () => {
  it.each<[string, string[]]>([
    ['two links', [linkOf({ id: 'a' }), linkOf({ id: 'b' })]],
    ['an integer too large for a double', [linkOf({ clicks: 9_007_199_254_740_993n })]],
    ['accents and escapes', [linkOf({ title: 'Größe "}{" \\ 😀\0\ud800' })]],
    ['nested objects', [linkOf({ geo: { DE: '}' }, tags: [{ id: 'x' }, { link: { id: 'y' } }] })]],
    ['an inherited name as a key', [linkOf({}).replace('{', '{"__proto__":{"a":1},')]],
  ])('gives the same records: %s', (_what, links) => {
    const page = pageOf(links);
    const records = parsed(page);
    expect(stable(records) === stable(plainParse(page))).toBe(true);
    const shown = records as Array<{ link: object }>;
    // Each link is one object.
    if (links.length === 1) expect(new Set(shown.map(({ link }) => link)).size).toBe(1);
  });

  it.each<[string, (link: string, i: number) => string]>([
    ['links within the metadata, too', (link, i) => plain(link, i).replace('{', `{"metadata":{"link":${link}},`)],
    ['links within the metadata alone', (link, i) => plain('null', i).replace('{', `{"metadata":{"link":${link}},`)],
    ['a link twice', (link, i) => plain(link, i).replace('{', `{"link":${link},`)],
  ])('is parsed plainly with %s', (_what, recordOf) => {
    const page = pageOf([linkOf({})], recordOf);
    expect(parsed(page)).toBeUndefined();
  });

  it.each<[string, (link: string, i: number) => string]>([
    ['inside a text', (link, i) => plain(link, i).replace('{', `{"note":${JSON.stringify(`"link":${link}`)},`)],
    [
      'after a name with the same ending',
      (link, i) => plain(link, i).replace('"key":"k"', `"a\\"link":${link.replace('link_1', 'z')}`),
    ],
  ])('ignores text that resembles a link: %s', (_what, recordOf) => {
    const page = pageOf([linkOf({})], recordOf);
    expect(stable(parsed(page) ?? plainParse(page)) === stable(plainParse(page))).toBe(true);
  });

  it.each<[string, (text: string) => string]>([
    ['cut short', (text) => text.slice(0, -200)],
    ['cut within a link', (text) => text.slice(0, text.lastIndexOf('description') + 50)],
    ['with a comma missing', (text) => text.replace(/,(?="key":"k"}\]$)/, '')],
    ['an object that holds the list', (text) => `{"data":${text}}`],
  ])('is left to the plain parser: %s', (_what, broken) => {
    expect(parsed(Buffer.from(broken(String(pageOf([linkOf({})])))))).toBeUndefined();
  });

  it('may have links with a common prefix, alternating', () => {
    const page = pageOf([1, 2].map((clicks) => linkOf({ clicks })));
    expect(stable(parsed(page) ?? plainParse(page)) === stable(plainParse(page))).toBe(true);
  });

  it('shows the new version of a changed link', () => {
    const parse = createRepeatedLinks();
    for (const clicks of [1, 2, 3]) {
      const page = pageOf([linkOf({ clicks })]);
      expect(stable(parse(page)) === stable(plainParse(page))).toBe(true);
    }
  });

  it('may begin with a byte order mark', () => {
    const page = Buffer.concat([Buffer.from('\ufeff'), pageOf([linkOf({})])]);
    expect(stable(parsed(page)) === stable(plainParse(page))).toBe(true);
  });

  it('is parsed plainly if every event has a link of its own', () => {
    const own = Array.from({ length: RECORDS * 4 }, (_, i) => linkOf({ id: `link_${i}` }));
    const page = Buffer.from(`[${own.map(plain).join()}]`);
    expect(createRepeatedLinks()(page)).toBeUndefined();
  });
});

describe.each(STREAM_NAMES)('any page of %s', (name) => {
  it('gives the same records and rows', () => {
    let shared = 0;
    fc.assert(
      fc.property(
        fc.array(recordOf(name), { minLength: 1, maxLength: 5 }),
        fc.array(anyJson, { maxLength: 3 }),
        (records, odd) => {
          const texts = records.map((record) => stringifyJson({ pad: PAD, ...record }));
          const page = Buffer.from(
            `[${[...Array(45).fill(texts.join()), ...odd.map((one) => stringifyJson(one))].join()}]`,
          );
          const found = parsed(page);
          if (!found) return;
          shared++;
          const expected = plainParse(page) as unknown[];
          expect(stable(found.slice(0, 10))).toBe(stable(expected.slice(0, 10)));
          const [flatten, plainly] = [createFlatten(STREAMS[name]), createFlatten(STREAMS[name])];
          for (const [i, record] of found.slice(0, 10).entries()) {
            // The order of keys in `_extra` matters: files hold it as text.
            expect(written(() => flatten(record))).toBe(written(() => plainly(expected[i])));
          }
        },
      ),
      { numRuns: 30 },
    );
    expect(shared).toBeGreaterThan(10);
  });
});

/** A record with a link long enough to be cached. */
const recordOf = (name: StreamName): fc.Arbitrary<object> =>
  oddRecord(name).map((record) => {
    const { link } = record as { link?: unknown };
    const fields = typeof link === 'object' && !Array.isArray(link) ? link : {};
    return { ...record, link: { description: PAD, ...fields } };
  });

function written(flatten: () => object): string {
  try {
    return stringifyJson(flatten());
  } catch (error) {
    if (!(error instanceof BadRecord)) throw error;
    return `${error.message}: ${stringifyJson(error.remains)}`;
  }
}
