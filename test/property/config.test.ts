import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { parseConfig } from '../../src/config/index.ts';
import { ConfigError } from '../../src/model/errors.ts';
import { isDeep } from '../tiers.ts';

/** `npm run prove` counts them. */
const RUNS = isDeep || process.env.TRIBUTARY_PROVE ? 500 : 100;

const KEY = 'canary-key-4711';
const ENV = { NAME: 'value', TRIBUTARY_API_KEY: KEY };

/** Parses, and rethrows everything but a ConfigError. No fault contains the key. */
function tryParse(text: string): void {
  try {
    parseConfig(text, 'f', ENV);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.faults.length).toBeGreaterThan(0);
    for (const fault of error.faults) expect(fault).toMatch(/^f:[1-9]\d*:[1-9]\d* \S/);
    expect(error.describe()).not.toContain(KEY);
  }
}

const WORDS = ['sources', 'main', 'baseUrl', 'apiKey', 'plan', 'pro', 'streams', 'clicks', 'filters', 'sinks', 'type'];
const MARKS = [
  ...'\n\t {}[]:,-?#&*!|>%@"\'`~=<0',
  '\n  ',
  ': ',
  '- ',
  '? ',
  '<<: ',
  '---\n',
  '...\n',
  '\r\n',
  '\u0000',
  '\ufeff',
];
const VARIABLES = [
  `\${NAME}`,
  `\${NO}`,
  `\${NO:-x}`,
  `\${`,
  `\${TRIBUTARY_API_KEY}`,
  '__proto__',
  'constructor',
  '1e999',
];
const soup = fc
  .array(fc.constantFrom(...WORDS, ...MARKS, ...VARIABLES), { maxLength: 40 })
  .map((parts) => parts.join(''));

describe('any config is read or refused with its faults', () => {
  it('from any text', () => {
    fc.assert(fc.property(fc.oneof(fc.string({ unit: 'binary' }), soup), tryParse), { numRuns: 4 * RUNS });
  });

  it('from any data', () => {
    const name = fc.oneof(fc.constantFrom(...WORDS, '__proto__'), fc.string({ maxLength: 5 }));
    const leaf = fc.oneof(fc.constantFrom(...WORDS, ...VARIABLES), fc.double(), fc.constant(null), fc.boolean());
    const data = fc.letrec((tie) => ({
      node: fc.oneof({ depthSize: 'small' }, leaf, tie('map'), fc.array(tie('node'), { maxLength: 3 })),
      map: fc.dictionary(name, tie('node'), { maxKeys: 4 }),
    })).map;
    fc.assert(
      fc.property(data, (value) => tryParse(stringify(value))),
      { numRuns: RUNS },
    );
  });

  it('from a source that is nearly right', () => {
    const value = fc.oneof(
      fc.constantFrom(...WORDS, ...VARIABLES, 'https://a.example', '5m', '7d', 'all'),
      fc.jsonValue(),
    );
    const fields = ['baseUrl', 'apiKey', 'plan', 'requestsPerSecond', 'since', 'streams'];
    const main = fc.record(Object.fromEntries(fields.map((field) => [field, value])), { requiredKeys: [] });
    fc.assert(
      fc.property(main, (source) => tryParse(stringify({ sources: { main: source } }))),
      { numRuns: RUNS },
    );
  });

  it('from a value that has no text', () => {
    const value = [{ toString: null }];
    for (const key of ['baseUrl', 'apiKey'])
      tryParse(stringify({ sources: { main: { baseUrl: 'x', apiKey: KEY, [key]: value } } }));
    for (const key of ['path', 'schema'])
      tryParse(stringify({ sources: { main: { apiKey: KEY } }, sinks: { a: { [key]: value } } }));
  });
});

describe('the key is never quoted', () => {
  it.each([
    `*${KEY}`,
    `&${KEY}`,
    `!${KEY} x`,
    `"${KEY}`,
    `'${KEY}`,
    `[${KEY}`,
    `{${KEY}`,
    `{ ${KEY}: x }`,
    `x: ${KEY}`,
    `@${KEY}`,
    `%${KEY}`,
    `|${KEY}`,
    `>${KEY}`,
    `"x" ${KEY}`,
    `"\\q${KEY}"`,
    `"\\x${KEY}"`,
    `- ${KEY}`,
    `? ${KEY}`,
    `${KEY}]`,
    `${KEY}\n  x`,
    `${KEY}: ${KEY}`,
  ])('written as %j', (value) => {
    for (const text of [
      `sources:\n  main:\n    apiKey: ${value}\n    plan: free\n`,
      `sources: { main: { plan: free, apiKey: ${value} } }`,
      `sources: { main: { plan: free, apiKey:${value} } }`,
      `sources:\n  main:\n    plan: free\n    apiKey ${value}\n`,
      `state: { url: ${value} }\nplan: x`,
    ]) {
      tryParse(text);
      expect(() => parseConfig(text, 'f', ENV)).toThrow(ConfigError);
    }
  });
});
