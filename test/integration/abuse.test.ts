import { mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { run } from '../../src/cli/program.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { parseConfig } from '../../src/config/index.ts';
import { freshPlace } from '../support/cli.ts';
import { freshDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';

/** Configs and command lines that are wrong by mistake or malice: refused with the reason and exit code 2, nothing written. */

const KEY = 'canary-key-4711-0815';
const source = (line = '', baseUrl = 'https://api.example.com'): string =>
  `sources:\n  main:\n    baseUrl: ${baseUrl}\n    apiKey: ${KEY}\n    plan: pro\n${line && `    ${line}\n`}`;
const sink = (settings: string): string => `${source()}sinks: { w: { ${settings} } }\n`;
const lake = (path: string): string => sink(`type: parquet, path: ${JSON.stringify(path)}`);

const CONFIGS: Array<[what: string, text: string, reason: RegExp]> = [
  [
    'a schema with quotes',
    sink(`type: postgres, schema: 'a"; drop schema public; --'`),
    /plain lower-case Postgres name/,
  ],
  ['a schema that is too long', sink(`type: postgres, schema: ${'a'.repeat(64)}`), /plain lower-case Postgres name/],
  ['a source with a quote', `sources: { "a'b": {} }`, /names are lower-case letters/],
  ['a source that is a path', 'sources: { ../../etc: {} }', /names are lower-case letters/],
  ['a sink that is a path', 'sinks: { a/b: { type: postgres } }', /names are lower-case letters/],
  ['a path with ..', lake('../outside'), /must not contain \.\./],
  ['a path with a later ..', lake('data/../../outside'), /must not contain \.\./],
  ['a bucket path with ..', lake('s3://bucket/../other'), /must not contain \.\./],
  ['a path with NUL', lake('data\0lake'), /control characters/],
  ['a file address as path', lake('file:///etc'), /a folder, or s3/],
  ['a web address as path', lake('https://bucket.example'), /a folder, or s3/],
  ['no bucket', lake('s3://'), /a folder, or s3/],
  ...[
    'file:///etc/passwd',
    'gopher://api.example.com',
    'https://2852039166',
    'https://0xa9.0xfe.0xa9.0xfe',
    'https://[::ffff:a9fe:a9fe]',
    'https://METADATA.google.internal./x',
    'https://100.100.100.200',
    'https://168.63.129.16',
  ].map((url): [string, string, RegExp] => [
    `the address ${url}`,
    source('', `"${url}"`),
    /baseUrl: .*(https|address)/,
  ]),
  ['a key in the path', source('', `https://api.example.com/${KEY}`), /a baseUrl holds a key, salt or token/],
  ['a key as a name', `${source()}sinks: { ${KEY}: { type: postgres } }\n`, /sinks: a name holds a key, salt or token/],
  [
    'a key as the name of an invalid sink',
    `${source()}sinks: { ${KEY}: { type: mysql } }\n`,
    /sinks\.\*\*\*\.type: must be/,
  ],
  [
    'a key as a schema',
    sink(`type: postgres, schema: ${KEY.replaceAll('-', '_')}`).replace(KEY, KEY.replaceAll('-', '_')),
    /a schema holds a key/,
  ],
  ['a key in a path', lake(`data/${KEY}`), /a path holds a key/],
  ['a huge number as a string', source(`requestsPerSecond: "${'9'.repeat(400)}"`), /from 0.01 to 1000/],
  ['a merge key', `x: &x { a: 1 }\n${source('<<: *x')}`, /is not a key of the config/],
  ['an alias of itself', 'a: &a [*a]', /a:|alias/],
  ['a tag', source('since: !!js/function "x"'), /YAML tags are not supported/],
  ['binary data', `sources: \0\u0001`, /./],
];

/** Runs in this process, inside the place: the test would see a stray state folder, whatever the repository's own folder holds. */
describe('a config', () => {
  const home = process.cwd();
  afterEach(() => process.chdir(home));

  it.each(CONFIGS)('with %s is refused, and nothing is written', async (_what, text, reason) => {
    const place = await freshPlace();
    const file = await place.config(text);
    process.chdir(place.dir);
    const [out, err]: [string[], string[]] = [[], []];
    const terminal = {
      out: (line: string) => out.push(line),
      err: (line: string) => err.push(line),
      live: () => {},
      columns: 80,
    };
    const code = await run(['sync', '--config', file], {
      terminal: terminal as unknown as Terminal,
      signal: new AbortController().signal,
      createLog: () => silentLog,
    });
    const stderr = err.join('');
    expect({ code, out }).toEqual({ code: 2, out: [] });
    expect(stderr).toMatch(reason);
    expect(stderr).toMatch(/\nnext: /);
    expect(stderr).not.toContain(KEY);
    expect(await place.files()).toEqual({ dir: ['t.yaml'], home: [], tmp: [] });
  });
});

const WINDOW = ['--from', '2026-11-01', '--to', '2026-11-02'];
const LINES: Array<[what: string, args: string[], reason: RegExp]> = [
  ['a source with a quote', ['sync', '--source', `a'; drop table x; --`], /there is no source/],
  ['a sink that is a path', ['sync', '--sink', '../../etc'], /there is no sink/],
  ['an invalid date', ['backfill', '--from', '2026-02-30', '--to', 'now'], /--from is not a date/],
  ['a date without end', ['backfill', '--from', '9'.repeat(400), '--to', 'now'], /--from is not a date/],
  ['an invalid window', ['backfill', '--from', 'now', '--to', 'now'], /is not before/],
  ['__proto__ as a filter', ['export', 'clicks', ...WINDOW, '--out', 'x.csv', '--filter', '__proto__=1'], /filter/],
  ['a huge count', ['runs', '--limit', '1e99'], /whole number/],
  ['an unknown flag', ['sync', '--insecure'], /unknown option/],
  ['a folder as config', ['sync', '--config', '.'], /cannot be read/],
  ['no config', ['sync', '--config', 'nowhere.yaml'], /there is no config file/],
  ['a link to itself', ['sync', '--config', 'loop'], /cannot be read/],
];

describe.concurrent('a command line', () => {
  it.each(LINES)('with %s is refused, and nothing is written', async (_what, args, reason) => {
    const place = await freshPlace();
    await place.config(source());
    await symlink('loop', join(place.dir, 'loop'));
    const rest = args.includes('--config') ? [] : ['--config', 't.yaml'];
    const { code, stderr } = await place.run([...args, ...rest]);
    expect(stderr).toMatch(reason);
    expect(code).toBe(2);
    expect(await place.files()).toEqual({ dir: ['loop', 't.yaml'], home: [], tmp: [] });
  });
});

describe('a legitimate config', () => {
  it.each([
    ['an address of a private network', source('', 'https://10.0.0.7')],
    ['another private address', source('', 'https://192.168.1.5:8443/api')],
    ['an internal name', source('', 'https://attribution.internal')],
    ['http to this machine', source('', 'http://127.0.0.1:8787')],
    [
      'an alias',
      `${source()}sinks:\n  a: { type: postgres, schema: one, indexes: &i [link] }\n  b: { type: postgres, indexes: *i }\n`,
    ],
    ['an absolute path', lake('/srv/lake')],
    ['a name with dots in it', lake('data/..lake/a..b')],
  ])('with %s is allowed', (_what, text) => {
    expect(() => parseConfig(text, 't.yaml', {})).not.toThrow();
  });
});

it('does not follow a link out of the lake, and writes nothing behind it', async () => {
  const [place, database, sandbox] = await Promise.all([
    freshPlace(),
    freshDatabase(),
    smallSandbox({ rows: { clicks: 20, leads: 5, sales: 5 }, days: 2 }),
  ]);
  const outside = join(place.dir, 'outside');
  await mkdir(outside);
  await mkdir(join(place.dir, 'lake'));
  await symlink(outside, join(place.dir, 'lake/clicks'));
  const { baseUrl, apiKey } = sandbox;
  const main = { baseUrl, apiKey, plan: 'enterprise', requestsPerSecond: 500, streams: { clicks: {} } };
  const sinks = { lake: { type: 'parquet', path: './lake' } };
  await place.config(JSON.stringify({ sources: { main }, sinks, state: { url: database.url } }));
  const { code, stderr } = await place.run(['sync', '--config', 't.yaml']);
  await database.drop();
  expect(stderr).toMatch(/leads out of the lake|link/);
  expect(code).toBe(2);
  expect(await readdir(outside)).toEqual([]);
});
