import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/index.ts';
import { freshPlace, longLines } from '../support/cli.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { plain, runOnTerminal } from '../support/pty.ts';
import { smallSandbox } from '../support/sandbox.ts';

const KEY = 'canary-key-4711';
let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await smallSandbox({ apiKey: KEY, rows: { clicks: 20, leads: 5, sales: 5 } });
});

const FILE = 'config/tributary.yaml';
const env = { TRIBUTARY_API_KEY: KEY };
const flags = (...more: string[]): string[] => [
  'init',
  '--yes',
  '--base-url',
  sandbox.baseUrl,
  '--plan',
  'business',
  ...more,
];

describe('tributary init', () => {
  it('writes a commented config that works, after one request, and never the key', async () => {
    const place = await freshPlace();
    const before = sandbox.service.log.entries.length;
    const { code, stdout, stderr } = await place.call(flags('--since', '2026-11-01', '--streams', 'leads,sales'), env);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`${FILE} was written\ntested: `);
    expect(sandbox.service.log.entries.length - before).toBe(1);
    const text = readFileSync(join(place.dir, FILE), 'utf8');
    expect(text).toMatch(/^# yaml-language-server: \$schema=\.\/tributary\.schema\.json\n/);
    expect(JSON.parse(readFileSync(join(place.dir, 'config/tributary.schema.json'), 'utf8'))).toHaveProperty(
      'properties',
    );
    expect(text).toContain(`apiKey: \${TRIBUTARY_API_KEY}`);
    expect(text).not.toContain(KEY);
    const { main } = parseConfig(text, FILE, env).config.sources;
    expect(main).toMatchObject({ plan: 'business', since: '2026-11-01', apiKey: KEY });
    expect(Object.keys(main?.streams ?? {})).toEqual(['leads', 'sales']);
  });

  it('does not read the files that other variables name', async () => {
    const place = await freshPlace();
    const { code, stderr } = await place.call(flags(), { ...env, TOOL_CONFIG_FILE: '/nowhere/at/all' });
    expect([code, stderr]).toEqual([0, '']);
  });

  it('never touches an existing file', async () => {
    const place = await freshPlace();
    await place.config('mine', 't.yaml');
    const { code, stderr } = await place.call(flags('--config', 't.yaml'), env);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^t\.yaml already exists\nkept: it was not changed\n/)]);
    expect(readFileSync(join(place.dir, 't.yaml'), 'utf8')).toBe('mine');
  });

  it.each([
    ['a refused key', { TRIBUTARY_API_KEY: 'wrong' }, [], 3, /answered 401.*\nkept: nothing was written\n/],
    ['an invalid answer', env, ['--since', 'soon'], 2, /^these are not valid:\n {2}--since must be a date/],
    ['the key instead of its variable', env, ['--key-variable', `${KEY}!`], 2, /takes the name of an environment/],
    ['injected YAML', env, ['--since', '1d"\nhttp: {port: 1}'], 2, /--since must be a date/],
  ])('%s: nothing is written', async (_name, variables, more, code, message) => {
    const place = await freshPlace();
    const ended = await place.call(flags(...more), variables);
    expect([ended.code, ended.stdout]).toEqual([code, '']);
    expect(ended.stderr).toMatch(message);
    expect(ended.text).not.toContain(KEY);
    expect((await place.files()).dir).toEqual([]);
  });

  it('without the key writes the config, and says that nothing was tested', async () => {
    const place = await freshPlace();
    const { code, stdout } = await place.call(flags());
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('not tested: TRIBUTARY_API_KEY is not set\nnext: set '),
    ]);
  });

  it('in a pipe asks nothing, and names the flags to give', async () => {
    const place = await freshPlace();
    const { code, stderr } = await place.call(['init']);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^there is no terminal for a prompt\nnext: give --yes/)]);
  });

  it('on a terminal asks, repeats invalid answers, and accepts the defaults', async () => {
    const place = await freshPlace();
    const typed = [
      { after: 'base URL of the service?', type: 'example.com\r' },
      { after: 'is not an address', type: `${sandbox.baseUrl}\r` },
      { after: 'Which plan', type: 'gold\r' },
      { after: 'must be one of pro', type: 'pro\r' },
      { after: 'holds the key?', type: '\r' },
      { after: 'Which streams?', type: 'clicks\r' },
      { after: 'How often should', type: 'soon\r' },
      { after: 'links: must be a duration', type: '1d\r' },
      { after: 'first sync begin?', type: '01/10/2026\r' },
      { after: 'since: must be a date', type: '7d\r' },
      { after: 'URL of your Postgres?', type: '\r' },
      { after: 'Additional indexes', type: 'link, all\r' },
      { after: 'indexes: has no all', type: 'link, customer\r' },
      { after: 'Also write Parquet files?', type: '\r' },
    ];
    const { code, text } = await runOnTerminal(place, ['init'], { env, typed });
    expect(code, text).toBe(0);
    expect(plain(text)).toContain(`${FILE} was written`);
    expect(longLines(plain(text))).toEqual([]);
    expect(text).not.toContain('Warning');
    const { sources, sinks } = parseConfig(readFileSync(join(place.dir, FILE), 'utf8'), FILE, env).config;
    expect(sources.main).toMatchObject({ plan: 'pro', since: '7d', links: { every: 86_400_000 } });
    expect(sinks.warehouse).toMatchObject({ indexes: ['link', 'customer'] });
  });

  it('Ctrl-C during the questions leaves nothing', async () => {
    const place = await freshPlace();
    const { code } = await runOnTerminal(place, ['init'], {
      env,
      typed: [{ after: 'base URL of the service?', type: '\x03' }],
    });
    expect(code).toBe(130);
    expect(existsSync(join(place.dir, 'config'))).toBe(false);
  });
});
