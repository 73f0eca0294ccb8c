import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LONGEST_INTEGER, parseJson, stringifyJson } from '../../src/model/json.ts';

const LARGE = 9_007_199_254_740_993n;

describe('integers above 2^53 stay exact', () => {
  it.each<[string, string, unknown]>([
    ['as the whole document', '9007199254740993', LARGE],
    ['negative', '[-9007199254740993]', [-LARGE]],
    ['in a list', '[1,9007199254740993,2]', [1, LARGE, 2]],
    ['nested', '{"a":{"b":[{"c":9007199254740993}]}}', { a: { b: [{ c: LARGE }] } }],
    ['with blanks around', '{ "a" :\n\t9007199254740993 \n}', { a: LARGE }],
    ['beyond 64 bits', '[123456789012345678901234567890]', [123456789012345678901234567890n]],
    ['the first unsafe integer', '[9007199254740992]', [9_007_199_254_740_992n]],
    ['next to a string of digits', '["9007199254740993",9007199254740993]', ['9007199254740993', LARGE]],
    [
      'after an escaped quote',
      '{"a":"\\",9007199254740993","b":9007199254740993}',
      { a: '",9007199254740993', b: LARGE },
    ],
    ['after a backslash at the end', '["\\\\",9007199254740993]', ['\\', LARGE]],
    ['next to a long fraction', '[0.30000000000000004,9007199254740993]', [0.30000000000000004, LARGE]],
    ['next to large exponents', '[1e-12,1e300,1e-300,9007199254740993]', [1e-12, 1e300, 1e-300, LARGE]],
  ])('%s', (_where, text, value) => {
    expect(parseJson(text)).toEqual(value);
    expect(parseJson(stringifyJson(value))).toEqual(value);
  });

  it.each<[string, string]>([
    ['sixteen safe digits', '[9007199254740991,1234567890123456,-9007199254740991]'],
    ['exponents', '[1e20,1E20,-1e+20,1234567890123456789e2,1e300]'],
    ['decimals', '[12345678901234567.5,0.12345678901234567890]'],
    ['inside strings', '{"id":"9007199254740993","text":"a:9007199254740993, b [9007199254740993]"}'],
    ['as a key', '{"9007199254740993":1}'],
  ])('and other numbers are unchanged: %s', (_what, text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });

  it('a number that no database holds becomes text', () => {
    const [most, more] = ['7'.repeat(LONGEST_INTEGER), '7'.repeat(LONGEST_INTEGER + 1)];
    const text = `{"a":${most},"b":[-${most},-${more}],"c":${more}}`;
    expect(parseJson(text)).toEqual({ a: BigInt(most), b: [-BigInt(most), `-${more}`], c: more });
  });

  it('a number that no double holds becomes text: infinity would be written as null', () => {
    expect(parseJson('{"a":1e400,"b":[-1.5E+999],"c":"x, 1e400","d":1e-999}')).toEqual({
      a: '1e400',
      b: ['-1.5E+999'],
      c: 'x, 1e400',
      d: 0,
    });
    expect(() => parseJson('[01e400]')).toThrow(SyntaxError);
  });

  it('are written with the same digits', () => {
    const text = '{"a":[9007199254740993,-9007199254740993],"b":"9007199254740993","c":123456789012345678901234567890}';
    expect(stringifyJson(parseJson(text))).toBe(text);
  });

  it('for any integer, anywhere in any document', () => {
    const leaf = fc.oneof(fc.bigInt(), fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean());
    const { document } = fc.letrec((tie) => ({
      document: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.array(tie('document')),
        fc.dictionary(fc.string(), tie('document')),
      ),
    }));
    fc.assert(
      fc.property(document, (value) => {
        const text = stringifyJson(value);
        expect(stringifyJson(parseJson(text))).toBe(text);
      }),
    );
  });
});

describe('ordinary documents', () => {
  it('are read and written like JSON', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.boolean(), (text, isPretty) => {
        const written = isPretty ? JSON.stringify(JSON.parse(text), null, 2) : text;
        // Once more through text: a double above 2^53 is written as an integer, and read as one.
        expect(JSON.parse(stringifyJson(parseJson(written)))).toEqual(JSON.parse(written));
        expect(stringifyJson(parseJson(text))).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  it('keep a key called __proto__, also with a large integer inside', () => {
    const value = parseJson('{"__proto__":9007199254740993,"a":{"__proto__":{"b":9007199254740993}}}') as object;
    expect(Object.keys(value)).toEqual(['__proto__', 'a']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(stringifyJson(value)).toBe('{"__proto__":9007199254740993,"a":{"__proto__":{"b":9007199254740993}}}');
  });

  it('may nest deeper than the stack', () => {
    const depth = 100_000;
    const text = `[9007199254740993,${'['.repeat(depth)}${']'.repeat(depth)}]`;
    expect((parseJson(text) as unknown[])[0]).toBe(LARGE);
  });

  it("may contain strings longer than a regular expression's stack", () => {
    for (const text of ['x'.repeat(12_000_000), '\\n'.repeat(6_000_000)]) {
      expect((parseJson(`["${text}",9007199254740993]`) as unknown[])[1]).toBe(LARGE);
    }
  });
});

describe('invalid JSON is refused', () => {
  it.each([
    '{12345678901234567:1}',
    '[1,12345678901234567:2]',
    '[0012345678901234567]',
    '[12345678901234567 8]',
    '[1234567890123456789x]',
    '[--12345678901234567]',
    '["12345678901234567]',
    '12345678901234567 {',
    '',
  ])('%s', (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
  });
});

it('text that imitates the mark of a large integer stays text', () => {
  // The old mark was public and the same in every process.
  const value = ['\uf8ff\ue000int:5', '\uf8ff\ue000int:abc', 'int:5', LARGE];
  expect(parseJson(stringifyJson(value))).toEqual(value);
});

it('a document that cannot be written is an error', () => {
  const circle: unknown[] = [LARGE];
  circle.push(circle);
  expect(() => stringifyJson(circle)).toThrow(TypeError);
});
