import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/index.ts';
import { ConfigError } from '../../src/model/errors.ts';

const KEY = 'canary-key-4711';

/** The faults of a config as printed; none if it is valid. */
function faultsOf(text: string): readonly string[] {
  try {
    parseConfig(text, 'f', {});
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.describe()).not.toContain(KEY);
    expect(error.describe()).toContain('\nnext: fix the lines named above');
    return error.faults;
  }
}

const SOURCE = `sources:\n  main:\n    baseUrl: https://a.example\n    apiKey: ${KEY}\n    plan: pro\n`;
/** Adds a line to the source: line 6 of the file. */
const inSource = (line: string): string => `${SOURCE}    ${line}\n`;
const without = (line: string): string =>
  SOURCE.split('\n')
    .filter((each) => !each.includes(line))
    .join('\n');
const plan = (text: string): string => SOURCE.replace('plan: pro', text);
const clicks = (text: string): string => inSource(`streams: { clicks: { ${text} } }`);

const DURATION = 'must be a duration such as 90s, 15m, 1h or 7d';
const BEGINNING = 'must be a date (2026-01-01), a duration back from the first sync (30d), or all';
const NAME = 'names are lower-case letters, digits, _ and -, at most 40';
const TAGS = 'YAML tags are not supported: put a value that begins with ! in quotes';
const MAPPING = 'must be a mapping of keys to values';
const NO_KEY = 'is not a key of the config';

describe('a fault is reported with its place', () => {
  it.each<[string, string, string]>([
    ['unknown key at the top', 'stat: {}', `f:1:1 stat: ${NO_KEY}: did you mean state?`],
    ['unknown key of a source', inSource('paln: x'), `f:6:5 sources.main.paln: ${NO_KEY}: did you mean plan?`],
    [
      'unknown stream',
      inSource('streams: { clics: {} }'),
      `f:6:16 sources.main.streams.clics: ${NO_KEY}: did you mean clicks?`,
    ],
    [
      'unknown key of a stream',
      clicks('evry: 5m'),
      `f:6:26 sources.main.streams.clicks.evry: ${NO_KEY}: did you mean every?`,
    ],
    [
      'unknown key of a sink',
      'sinks: { a: { type: postgres, uri: x } }',
      `f:1:31 sinks.a.uri: ${NO_KEY}: did you mean url?`,
    ],
    [
      'a key of another kind of sink',
      'sinks: { a: { type: iceberg, warehouse: ./x, path: ./x } }',
      `f:1:46 sinks.a.path: ${NO_KEY}`,
    ],
    [
      'a token of equal letters',
      `http: { token: ${'x'.repeat(40)} }`,
      'f:1:9 http.token: must have at least 16 characters, 8 of them different, and not be a word, a sequence or a repetition: openssl rand -hex 32 makes a good one',
    ],
    [
      "the owner's name for another token",
      'http: { token: the-token-of-the-owner, tokens: { owner: { token: another-long-token, role: read } } }',
      'f:1:50 http.tokens.owner: is the name of http.token in the audit trail: choose another, or leave http.token out',
    ],
    [
      'one secret for two roles',
      'http: { tokens: { a: { token: one-long-token-for-two, role: read }, b: { token: one-long-token-for-two, role: admin } } }',
      'f:1:69 http.tokens.b: has the same secret as another token: each needs its own',
    ],
    [
      'a proxy that is no address',
      'http: { trustProxy: [nonsense] }',
      'f:1:22 http.trustProxy[0]: must be an address or a network, such as 10.0.0.0/8',
    ],
    ...['tributary', 'pg_catalog', 'information_schema', 'tributary_queue'].map((schema): [string, string, string] => [
      `the schema ${schema}`,
      `sinks: { a: { type: postgres, schema: ${schema} } }`,
      'f:1:31 sinks.a.schema: belongs to Postgres or to the state of tributary: choose another name',
    ]),
    [
      'a password in the address of a bucket',
      'sinks: { a: { type: parquet, path: "s3://user:pw@bucket/lake" } }',
      'f:1:30 sinks.a.path: must not hold a user name, password or port: keys come from the environment',
    ],
    ['unknown key of state', 'state: { uri: x }', `f:1:10 state.uri: ${NO_KEY}: did you mean url?`],
    ['unknown key of queue', 'queue: { uri: x }', `f:1:10 queue.uri: ${NO_KEY}: did you mean url?`],
    ['unknown key of privacy', 'privacy: { ips: drop }', `f:1:12 privacy.ips: ${NO_KEY}: did you mean ip?`],
    ['unknown key of http', 'http:\n  prot: 1', `f:2:3 http.prot: ${NO_KEY}: did you mean port?`],
    [
      'a beginning that is still to come',
      inSource('since: 2126-01-01'),
      'f:6:5 sources.main.since: is in the future: nothing would be read before then',
    ],
    ['__proto__ at the top', '__proto__: {}', `f:1:1 __proto__: ${NO_KEY}`],
    ['__proto__ as a source', 'sources: { __proto__: {} }', `f:1:12 __proto__: ${NO_KEY}`],
    ['constructor', 'constructor: {}', `f:1:1 constructor: ${NO_KEY}`],
    [
      'http to another host',
      SOURCE.replace('https', 'http'),
      'f:3:5 sources.main.baseUrl: must use https: over http the key would travel to a.example in the clear',
    ],
    [
      'free plan',
      plan('plan: free'),
      'f:5:5 sources.main.plan: the free plan has no analytics budget: GET /events needs the Business plan or higher',
    ],
    [
      'free plan with a number',
      plan('plan: free\n    requestsPerSecond: 4'),
      'f:5:5 sources.main.plan: the free plan has no analytics budget: GET /events needs the Business plan or higher',
    ],
    [
      'enterprise without a number',
      plan('plan: enterprise'),
      'f:5:5 sources.main.plan: the enterprise plan has a custom budget: give it as requestsPerSecond',
    ],
    [
      'unknown plan',
      plan('plan: gold'),
      'f:5:5 sources.main.plan: must be one of free, pro, business, advanced, enterprise',
    ],
    [
      'no plan',
      without('plan'),
      'f:2:3 sources.main.plan: is missing: it must be one of free, pro, business, advanced, enterprise',
    ],
    ['no key', without('apiKey'), 'f:2:3 sources.main.apiKey: is missing'],
    ['empty key', SOURCE.replace(KEY, '""'), 'f:4:5 sources.main.apiKey: must not be empty'],
    [
      'a number as key',
      SOURCE.replace(KEY, '4711'),
      'f:4:5 sources.main.apiKey: must be a string, not a number: put it in quotes',
    ],
    ['no address', without('baseUrl'), 'f:2:3 sources.main.baseUrl: is missing'],
    [
      'too many a second',
      inSource('requestsPerSecond: 5000'),
      'f:6:5 sources.main.requestsPerSecond: requestsPerSecond must be a number from 0.01 to 1000',
    ],
    [
      'more than the plan grants',
      inSource('requestsPerSecond: 100'),
      'f:6:5 sources.main.requestsPerSecond: 100 is more than the pro plan grants, 2: the service would answer 429',
    ],
    ['infinitely many', inSource('requestsPerSecond: 1e999'), 'f:6:5 sources.main.requestsPerSecond: must be a number'],
    ['a word as number', inSource('requestsPerSecond: four'), 'f:6:5 sources.main.requestsPerSecond: must be a number'],
    ['bad since', inSource('since: yesterday'), `f:6:5 sources.main.since: ${BEGINNING}`],
    ['a number as since', inSource('since: 30'), `f:6:5 sources.main.since: ${BEGINNING}`],
    ['no such date', inSource('since: 2026-02-30'), `f:6:5 sources.main.since: ${BEGINNING}`],
    ['since before the calendar', inSource('since: 999999999d'), `f:6:5 sources.main.since: ${BEGINNING}`],
    ['bad duration', clicks('every: often'), `f:6:26 sources.main.streams.clicks.every: ${DURATION}`],
    ['no duration at all', clicks('every: 0m'), `f:6:26 sources.main.streams.clicks.every: ${DURATION}`],
    ['a bare number', clicks('settle: 5'), `f:6:26 sources.main.streams.clicks.settle: ${DURATION}`],
    [
      'an endless duration',
      clicks('lookback: 99999999999999999d'),
      `f:6:26 sources.main.streams.clicks.lookback: ${DURATION}`,
    ],
    [
      'no stream',
      inSource('streams: {}'),
      'f:6:5 sources.main.streams: is empty: name a stream, or omit streams to sync all three',
    ],
    ['a list of streams', inSource('streams: [clicks]'), `f:6:5 sources.main.streams: ${MAPPING}, not a list`],
    [
      'unknown filter',
      clicks('filters: { contry: US }'),
      'f:6:37 sources.main.streams.clicks.filters.contry: the service has no parameter "contry": did you mean country?',
    ],
    [
      'a filter of the reader',
      clicks('filters: { limit: 5 }'),
      'f:6:37 sources.main.streams.clicks.filters.limit: limit is set by the reader itself: the reader pages through everything by itself',
    ],
    [
      'one bad entry of a list',
      clicks('filters: { country: [US, "a,b"] }'),
      'f:6:51 sources.main.streams.clicks.filters.country[1]: country "a,b" holds a comma, which the service reads as two values; it has no way to ask for one',
    ],
    ['filters as text', clicks('filters: US'), `f:6:26 sources.main.streams.clicks.filters: ${MAPPING}, not a string`],
    ['bad name of a source', 'sources: { Main: {} }', `f:1:12 sources.Main: ${NAME}`],
    ['a number as name', 'sources: { 1: {} }', `f:1:12 sources.1: ${NAME}`],
    ['bad name of a sink', 'sinks: { "a b": { type: postgres } }', `f:1:10 sinks.a…: ${NAME}`],
    ['a source that is empty', 'sources:\n  main:\n', 'f:2:3 sources.main: has no value: write {}, or remove the line'],
    ['sources that are empty', 'sources:\n', 'f:1:1 sources: has no value: write {}, or remove the line'],
    ['no sink', 'sinks: {}', 'f:1:1 sinks: is empty: name a sink, or omit sinks for tables in the state database'],
    [
      'unknown kind of sink',
      'sinks: { a: { type: mysql } }',
      'f:1:15 sinks.a.type: must be postgres, parquet or iceberg',
    ],
    [
      'a sink of no kind',
      'sinks: { a: {} }',
      'f:1:10 sinks.a.type: is missing: it must be postgres, parquet or iceberg',
    ],
    [
      'bad schema',
      'sinks: { a: { type: postgres, schema: My Data } }',
      'f:1:31 sinks.a.schema: must be a plain lower-case Postgres name',
    ],
    ['parquet without a path', 'sinks: { a: { type: parquet } }', 'f:1:10 sinks.a.path: is missing'],
    [
      'bad partition',
      'sinks: { a: { type: parquet, path: x, partition: week } }',
      'f:1:39 sinks.a.partition: must be one of day, hour',
    ],
    ['bad queue', 'queue: { url: "amqp://x" }', 'f:1:10 queue.url: must begin with redis:// or rediss://'],
    ['bad treatment', 'privacy: { customer: truncate }', 'f:1:12 privacy.customer: must be one of keep, drop, hash'],
    ['no such port', 'http: { port: 99999 }', 'f:1:9 http.port: must be a port number'],
    ['half a port', 'http: { port: 1.5 }', 'f:1:9 http.port: must be a port number'],
    ['a list at the top', '- a', `f:1:1 the file: ${MAPPING}, not a list`],
    ['a word at the top', 'hello', `f:1:1 the file: ${MAPPING}, not a string`],
    ['a tab', 'state:\n\turl: x', 'f:2:1 is indented with a tab: use spaces'],
    ['a key twice', 'state: {}\nstate: {}', 'f:2:1 this key is a duplicate: keep one of the two'],
    [
      'two documents',
      'state: {}\n---\nstate: {}',
      'f:2:1 a second document starts here (---): a config is a single document',
    ],
    ['a list as key', '? [a]\n: 1', 'f:1:3 a key must be a plain word'],
    ['an unknown tag', inSource('since: !env SINCE'), `f:6:12 ${TAGS}`],
    ['a known tag', 'state: !!set { url }', `f:1:14 ${TAGS}`],
    ['an alias to nothing', inSource('since: *later'), 'f:6:12 not an alias: put a value that begins with * in quotes'],
    ['deep nesting', '['.repeat(100_000), 'f:1:1 the file is nested too deeply for a config'],
    ['deep lists', '- '.repeat(100_000), 'f:1:1 the file is nested too deeply for a config'],
    ['a large file', `# ${'x'.repeat(300_000)}`, 'f:1:1 the file is too large for a config'],
  ])('%s', (_, text, fault) => {
    expect(faultsOf(text)).toEqual([fault]);
  });

  it('does not quote a database URL that cannot be parsed', () => {
    for (const url of [
      'mysql://h/d',
      `postgresql://u:${KEY}#x@h/d`,
      `postgres://u:${KEY}/@h/d`,
      `postgres://%zz${KEY}:p@h/d`,
    ]) {
      const faults = faultsOf(`state: { url: "${url}" }\nsinks: { w: { type: postgres, url: "${url}" } }`);
      expect(faults).toEqual([
        expect.stringMatching(/^f:1:10 state\.url: the database URL .*write it as postgresql:/),
        expect.stringMatching(/^f:2:31 sinks\.w\.url: the database URL .*write it as postgresql:/),
      ]);
    }
  });

  it('aliases that multiply', () => {
    const tens = (of: string): string => `[${Array(10).fill(of).join(', ')}]`;
    const text = `a: &a ${tens('1')}\nb: &b ${tens('*a')}\nc: &c ${tens('*b')}\nd: ${tens('*c')}\n`;
    expect(faultsOf(text)).toEqual(['f:1:1 the aliases (*) expand to too many values']);
  });
});

it('all faults are reported at once, in the order of the file', () => {
  const text = `${SOURCE.replace('https', 'http').replace('pro', 'free')}    requestsPerSecond: -1
    since: soon
    streams:
      sales: { every: 5, filters: { limit: 1, key: x } }
sinks: { A: { type: postgres }, b: { type: csv } }
nonsense: 1
http: { port: -1 }
`;
  expect(faultsOf(text).map((fault) => /^f:\S+ \S+:/.exec(fault)?.[0])).toEqual([
    'f:3:5 sources.main.baseUrl:',
    'f:5:5 sources.main.plan:',
    'f:6:5 sources.main.requestsPerSecond:',
    'f:7:5 sources.main.since:',
    'f:9:16 sources.main.streams.sales.every:',
    'f:9:37 sources.main.streams.sales.filters.limit:',
    'f:9:47 sources.main.streams.sales.filters.key:',
    'f:10:10 sinks.A:',
    'f:10:38 sinks.b.type:',
    'f:11:1 nonsense:',
    'f:12:9 http.port:',
  ]);
});

const tokenFaults = (token: string): readonly string[] => faultsOf(`${SOURCE}http: { token: "${token}" }`);

it.each([
  '1234567890123456',
  'changeme-changeme',
  'Password-Password-1',
  'abcdefghijklmnop',
  'qwertyuiopasdfghjkl',
  'hunter2!hunter2!hunter2!',
  'tributary-admin-token',
])('refuses the guessable token %s', (token) => {
  expect(tokenFaults(token)).toEqual([expect.stringContaining('not be a word, a sequence or a repetition')]);
});

it('accepts random tokens', () => {
  const tokens = Array.from({ length: 300 }, () => randomBytes(16).toString('hex'));
  expect(tokens.flatMap(tokenFaults)).toEqual([]);
});

describe('two sinks', () => {
  const rest = (warehouse: string): string => `{ type: rest, uri: http://127.0.0.1:8181, warehouse: ${warehouse} }`;
  const sinks = (first: string, second: string): readonly string[] =>
    faultsOf(`sinks:\n  a: { ${first} }\n  b: { ${second} }\n`).map((fault) => fault.replace(/^f:3:\d+ /, ''));

  it.each([
    ['one schema', 'type: postgres', 'type: postgres, keep: 9d', 'schema'],
    ['one folder', 'type: parquet, path: ./lake', 'type: parquet, path: lake/', 'path'],
    ['one bucket', 'type: parquet, path: s3://b/lake', 'type: parquet, path: s3://b/lake/', 'path'],
    ['one namespace', 'type: iceberg, warehouse: ./x', 'type: iceberg, warehouse: ./y', 'namespace'],
  ])('cannot write to %s', (_what, first, second, key) => {
    expect(sinks(first, second)).toEqual([`sinks.b: writes to the same place as sink a: change its ${key}`]);
  });

  it.each([
    ['schemas', 'type: postgres', 'type: postgres, schema: other'],
    ['databases', 'type: postgres', 'type: postgres, url: "postgresql://u@h/other"'],
    ['folders', 'type: parquet, path: ./lake', 'type: parquet, path: ./lake2'],
    ['namespaces', 'type: iceberg, warehouse: ./x', 'type: iceberg, warehouse: ./x, namespace: other'],
    [
      'warehouses of a catalog',
      `type: iceberg, warehouse: ./x, catalog: ${rest('one')}`,
      `type: iceberg, warehouse: ./y, catalog: ${rest('two')}`,
    ],
  ])('can have different %s', (_what, first, second) => {
    expect(sinks(first, second)).toEqual([]);
  });
});
