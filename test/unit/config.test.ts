import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type LoadedConfig, loadConfig, loadConfigOrDefaults, parseConfig } from '../../src/config/index.ts';
import { configSchema } from '../../src/config/schema.ts';
import { ConfigError } from '../../src/model/errors.ts';

const parse = (text: string, env: Record<string, string> = {}): LoadedConfig => parseConfig(text, 'f.yaml', env);
const source = (rest = ''): string =>
  `sources:\n  main:\n    baseUrl: https://a.example\n    apiKey: k\n    plan: pro\n${rest}`;

/** As in the design document, from which users have copied it. */
const SAMPLE = `
sources:
  main:
    baseUrl: https://api.example.com       # http only for loopback hosts
    apiKey: \${TRIBUTARY_API_KEY}
    plan: business                         # pro 2/s · business 4/s · advanced 8/s
    requestsPerSecond: 4
    since: 2026-01-01
    streams:
      clicks: { every: 5m, lookback: 15m }
      leads:  { every: 1m, lookback: 15m, resweep: 90d }
      sales:  { every: 1m, filters: { country: [US, CA], trigger: -qr } }
sinks:
  warehouse: { type: postgres, url: "\${DATABASE_URL}", schema: attribution }
  lake:      { type: parquet, path: ./data/lake, partition: day, compression: zstd }
state:   { url: "\${DATABASE_URL}" }
queue:   { url: "\${REDIS_URL}" }
privacy: { linkPassword: drop, ip: keep, customer: keep }
http:    { host: 127.0.0.1, port: 7070, token: "\${TRIBUTARY_TOKEN:-}" }
`;

describe('the sample of the design', () => {
  it('is parsed as written', () => {
    const database = 'postgresql://u:p@db.example/x';
    const env = { TRIBUTARY_API_KEY: 'key', DATABASE_URL: database, REDIS_URL: 'redis://r' };
    const { config, warnings } = parse(SAMPLE, env);
    const { main } = config.sources;
    expect(main).toMatchObject({ baseUrl: 'https://api.example.com', apiKey: 'key', requestsPerSecond: 4 });
    expect(main).toMatchObject({ plan: 'business', since: '2026-01-01' });
    expect(main?.streams.clicks).toMatchObject({ schedule: { every: 300_000 }, lookback: 900_000, settle: 600_000 });
    expect(main?.streams.leads).toMatchObject({ schedule: { every: 60_000 }, resweep: 90 * 86_400_000 });
    expect(main?.streams.sales?.filters.query).toEqual({ country: 'US,CA', trigger: '-qr' });
    expect(config.sinks).toEqual({
      warehouse: { type: 'postgres', url: database, schema: 'attribution', partition: 'none', indexes: [] },
      lake: { type: 'parquet', path: './data/lake', partition: 'day', compression: 'zstd' },
    });
    expect(config.state.url).toBe(database);
    expect(config.queue.url).toBe('redis://r');
    expect(config.privacy).toEqual({ linkPassword: 'drop', ip: 'keep', customer: 'keep' });
    expect(config.http).toEqual({
      host: '127.0.0.1',
      port: 7070,
      token: undefined,
      tokens: {},
      trustProxy: false,
      basePath: '',
    });
    expect(warnings).toEqual([]);
  });
});

describe('config/tributary.yaml', () => {
  const path = 'config/tributary.yaml';
  const text = readFileSync(path, 'utf8');

  it('is valid as it is, with an empty environment', () => {
    const { config, warnings } = loadConfig(path, {});
    expect(config.sources.main).toMatchObject({ baseUrl: 'http://127.0.0.1:8787', apiKey: 'sandbox-key' });
    expect(Object.keys(config.sources.main?.streams ?? {})).toEqual(['clicks', 'leads', 'sales']);
    expect(config.state.url).toBeUndefined();
    expect(warnings).toEqual([]);
  });

  it('shows no key that the schema lacks, also in its comments', () => {
    const all = text.replace(/^( *)# (\w+: )/gm, '$1$2');
    expect(all).not.toBe(text);
    const { config } = parse(all, { REDIS_URL: 'redis://127.0.0.1' });
    expect(config.sources.main?.streams.sales?.filters.query).toEqual({ country: 'US,CA', trigger: '-qr' });
    expect(config.sinks.lake?.type).toBe('parquet');
    expect(config.queue.url).toBe('redis://127.0.0.1');
  });

  it('shows every key of the schema', () => {
    const keys = keysOf(z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' }));
    expect(keys).toEqual(expect.arrayContaining(['requestsPerSecond', 'settle', 'compression', 'token', 'truncate']));
    expect(keys.filter((key) => !new RegExp(`\\b${key}\\b`).test(text))).toEqual([]);
  });
});

/** Names of properties, and the values of every enum. */
function keysOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties, enum: words, ...rest } = schema as { properties?: object; enum?: unknown[] };
  const own = [...Object.keys(properties ?? {}), ...(words ?? []).map(String)];
  return [...own, ...[...Object.values(properties ?? {}), ...Object.values(rest)].flatMap(keysOf)];
}

describe('the environment', () => {
  const since = (value: string, env: Record<string, string> = {}): string | undefined =>
    parse(source(`    since: ${value}\n`), env).config.sources.main?.since;
  const refused = (value: string, env: Record<string, string> = {}): string => {
    try {
      since(value, env);
    } catch (error) {
      if (error instanceof ConfigError) return error.faults.join('\n');
    }
    throw new Error('it was accepted');
  };

  it.each([
    [`\${S}`, { S: '7d' }, '7d'],
    [`\${S:-9d}`, { S: '7d' }, '7d'],
    [`\${S:-9d}`, {}, '9d'],
    [`\${S:-9d}`, { S: '' }, '9d'],
    [`"\${N}\${U}"`, { N: '7', U: 'd' }, '7d'],
    [`2026-\${M:-01}-15`, {}, '2026-01-15'],
  ])('%s with %j is %s', (value, env, wanted) => {
    expect(since(value, env)).toBe(wanted);
  });

  it('reports a missing variable once, where it is used', () => {
    const text = source(`    since: \${S}\nstate: { url: "\${DB}" }\n`).replace('https://a.example', `\${BASE}`);
    expect(() => parse(text, { S: '' })).toThrow(
      [
        'the config has 3 errors:',
        '  f.yaml:3:14 the environment variable BASE is not set, or empty',
        '  f.yaml:6:12 the environment variable S is not set, or empty',
        '  f.yaml:7:15 the environment variable DB is not set, or empty',
      ].join('\n'),
    );
  });

  it.each([`\${S-7d}`, `"\${S"`, `\${}`, `"\${S:-\${T}}"`, `"\${A B}"`, `\${1}`])('refuses %s', (value) => {
    expect(refused(value, { S: '7d', T: '7d' })).toMatch(/^f\.yaml:6:12 write a variable as \$\{NAME\}/);
  });

  it('does not find inherited properties of an object', () => {
    expect(refused(`\${constructor}`)).toContain('constructor is not set');
    expect(refused(`\${__proto__}`)).toContain('__proto__ is not set');
  });

  it.each([
    'x\n    plan: enterprise',
    'x", plan: "enterprise',
    '{ a: b }',
    '[1, 2]',
    '*alias',
    '!!int 5',
    `\${OTHER}`,
    '$& $1 $$',
    "' # ",
  ])('is never parsed as YAML: %j', (value) => {
    for (const quoted of [`\${KEY}`, `"\${KEY}"`, `'\${KEY}'`]) {
      const text = source().replace('apiKey: k', `apiKey: ${quoted}`);
      const { config } = parse(text, { KEY: value, OTHER: 'other' });
      expect(config.sources.main).toMatchObject({ apiKey: value, plan: 'pro' });
    }
  });

  it('is used in values, not in keys', () => {
    expect(() => parse(`\${A}: {}`, { A: 'state' })).toThrow(
      'f.yaml:1:1 environment variables can be used in values, not in keys',
    );
  });

  it('gives numbers as text', () => {
    const text = source(`    requestsPerSecond: \${RPS}\nhttp: { port: "\${PORT}" }\n`);
    const { config } = parse(text, { RPS: '1.5', PORT: '8080' });
    expect([config.sources.main?.requestsPerSecond, config.http.port]).toEqual([1.5, 8080]);
  });
});

describe('optional parts', () => {
  it.each(['', '# nothing\n', '{}', '---\n'])('the content of the file: %j', (text) => {
    const { config } = parse(text);
    expect(config.sources).toEqual({});
    expect(config.sinks).toEqual({
      warehouse: { type: 'postgres', url: undefined, schema: 'attribution', partition: 'none', indexes: [] },
    });
    expect(config.http).toMatchObject({ host: '127.0.0.1', port: 7070 });
    expect(config.http.token).toBeUndefined();
  });

  it('all but three keys of a source', () => {
    const main = parse(source()).config.sources.main;
    expect(main).toMatchObject({ requestsPerSecond: 2, since: '30d' });
    expect(Object.keys(main?.streams ?? {})).toEqual(['clicks', 'leads', 'sales']);
  });

  it('repetition, by anchors', () => {
    const { config } = parse(source('    streams: { leads: &s { every: 3m }, sales: *s }\n'));
    expect(config.sources.main?.streams.sales?.schedule).toEqual({ every: 180_000 });
  });

  it('the file, for commands that only read', () => {
    expect(() => loadConfigOrDefaults('no/such.yaml', {})).toThrow('there is no config file no/such.yaml');
    expect(() => loadConfig('config', {})).toThrow('the config file config cannot be read (EISDIR)');
  });
});
