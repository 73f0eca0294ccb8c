import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadProgram } from '../../src/cli/program.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import {
  CANARIES,
  canaryUrl,
  filesAsText,
  found,
  plantCanaries,
  redisAsText,
  type Trace,
  tablesAsText,
} from '../support/canaries.ts';
import { freshPlace, type Place } from '../support/cli.ts';
import { levelsOf } from '../support/command-line.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { recordCase } from '../support/proof.ts';
import { hasRedis, startRedis, type TestRedis } from '../support/redis.ts';
import { sandboxWith } from '../support/sandbox.ts';

/** Canaries go through every command, failure and log level; then every byte that was written or printed is searched. */

/** Any other canary is a leak. With `ip: keep` and `customer: keep`, the defaults, these are for readers of the tables. */
const ALLOWED = {
  ip: [/^table (clicks|leads|sales)(_|$)/, /^table quarantine$/, /^file work\/lake\//, /^file work\/out\.ndjson$/],
  email: [/^table (leads|sales|customers)(_|$)/, /^table quarantine$/, /^file work\/lake\//],
} as const;

const program = await loadProgram([], () => async () => {}, {} as Terminal);
const LEAVES = levelsOf(program)
  .filter(({ path, commands }) => path !== '' && commands.length === 0 && !/(^| )help$/.test(path))
  .map(({ path }) => path);

const WINDOW = ['--from', '3d', '--to', 'now'];
/** The arguments of a command besides `--config`. A command that is not listed, including any new one, is run without. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  backfill: ['leads', ...WINDOW, '--queue'],
  verify: ['leads', ...WINDOW],
  export: ['clicks', ...WINDOW, '--out', 'out.ndjson'],
  'cursor set': ['leads', '--to', '2d', '--yes'],
  'cursor reset': ['sales', '--yes'],
  'quarantine show': ['1'],
  'quarantine retry': ['1'],
  'quarantine drop': ['999'],
  forget: ['--customer', 'cus_nobody', '--yes'],
  completion: ['bash'],
  ...Object.fromEntries(['pause', 'resume', 'cancel', 'retry'].map((verb) => [`backfills ${verb}`, ['1']])),
};
const WITHOUT_CONFIG = ['demo', 'completion', 'sandbox', 'init'];
/** These run until they are stopped; any other that takes too long is stopped too. */
const LINGERING = ['worker', 'start', 'sandbox'];
const longestMs = ([command = '']: readonly string[]): number => (LINGERING.includes(command) ? 3000 : 40_000);

let place: Place;
let database: TestDatabase;
let db: Database;
let redis: TestRedis;
let sandbox: Sandbox;
let env: Record<string, string>;
const traces: Trace[] = [];

beforeAll(async () => {
  [place, database, redis, sandbox] = await Promise.all([
    freshPlace(),
    freshDatabase(),
    startRedis({ requirepass: CANARIES.redisPassword }),
    sandboxWith(['password'], { apiKey: CANARIES.apiKey, rows: { clicks: 20, leads: 8, sales: 4 }, days: 3 }),
  ]);
  plantCanaries(sandbox);
  db = connect({ url: database.url, max: 1 });
  env = {
    TRIBUTARY_LOG: 'trace',
    TRIBUTARY_API_KEY: CANARIES.apiKey,
    DATABASE_URL: await canaryUrl(db, database.url),
    REDIS_URL: redis.url,
    SALT: CANARIES.salt,
    TOKEN: CANARIES.httpToken,
  };
  await place.config(configOf(sandbox.baseUrl));
});
afterAll(async () => {
  await db.query({ text: `drop owned by canary_${process.pid}` }).catch(() => {}); // It owns only tables of this database.
  await db.close();
  await database.drop();
});

/** As in a config: the environment fills it in. */
const variable = (name: string): string => `\${${name}}`;

function configOf(baseUrl: string, change: object = {}): string {
  return JSON.stringify({
    sources: { main: { baseUrl, apiKey: variable('TRIBUTARY_API_KEY'), plan: 'enterprise', requestsPerSecond: 200 } },
    sinks: { warehouse: { type: 'postgres' }, lake: { type: 'parquet', path: './lake' } },
    state: { url: variable('DATABASE_URL') },
    queue: { url: variable('REDIS_URL') },
    privacy: { salt: variable('SALT') },
    http: { token: variable('TOKEN') },
    ...change,
  });
}

/** Runs a command and keeps its output. */
async function said(
  args: readonly string[],
  more: Record<string, string> = {},
): Promise<{ code: number | null; text: string }> {
  const running = place.start(args, { ...env, ...more });
  const ended = await Promise.race([running.done, sleep(longestMs(args), undefined)]);
  if (!ended) running.child.kill('SIGTERM');
  const { code, text } = await running.done;
  traces.push({ place: `output of ${args.join(' ')}`, text });
  return { code, text };
}

describe.skipIf(!hasRedis)('every command', () => {
  it('sync writes the data for the others', async () => {
    const { code, text } = await said(['sync', '--config', 't.yaml']);
    expect({ code, text }).toEqual({ code: 0, text: expect.stringContaining('set aside') });
  });

  // The demo brings its own service, database and key: none of our canaries goes in.
  it.each(LEAVES.filter((path) => path !== 'demo').map((path) => [path]))('%s', async (path) => {
    const config = WITHOUT_CONFIG.includes(path) ? [] : ['--config', 't.yaml'];
    const { code } = await said([...path.split(' '), ...(ARGUMENTS[path] ?? []), ...config]);
    // A refusal of the arguments is fine here; a bug is not.
    expect(code).not.toBe(1);
  });
});

describe.skipIf(!hasRedis)('every failure', () => {
  const closed = 'http://127.0.0.1:9';
  const failing: Array<[what: string, args: string[], config: () => string, more?: Record<string, string>]> = [
    ['an unreachable service', ['doctor'], () => configOf(closed)],
    [
      'a refused key that is echoed',
      ['doctor'],
      () => configOf(sandbox.baseUrl),
      { TRIBUTARY_API_KEY: `${CANARIES.apiKey}-wrong` },
    ],
    [
      'an unreachable database',
      ['status'],
      () => configOf(sandbox.baseUrl),
      { DATABASE_URL: `postgresql://u:${CANARIES.databasePassword}@127.0.0.1:9/d` },
    ],
    [
      'an invalid database URL',
      ['sync'],
      () => configOf(sandbox.baseUrl),
      { DATABASE_URL: `postgresql://u:${CANARIES.databasePassword}#@h/d` },
    ],
    [
      'an unreachable Redis',
      ['doctor'],
      () => configOf(sandbox.baseUrl),
      { REDIS_URL: `redis://:${CANARIES.redisPassword}@127.0.0.1:9` },
    ],
    ['a config with faults', ['sync'], () => configOf(sandbox.baseUrl, { nonsense: CANARIES.apiKey })],
    [
      'a key as a name',
      ['sync'],
      () => configOf(sandbox.baseUrl, { sinks: { [CANARIES.apiKey]: { type: 'postgres' } } }),
    ],
  ];

  it.each(failing)('%s', async (what, args, config, more) => {
    const name = `${what.replaceAll(' ', '-')}.yaml`;
    // The key in this config is the user's own mistake: our output is searched for it, not the config.
    const text = config();
    await place.config(text, name);
    const { code } = await said([...args, '--config', name], more);
    // 130: it was still retrying.
    expect([2, 3, 4, 130]).toContain(code);
    await place.config('', name);
  });

  it('an error page that repeats the key and an event', async () => {
    const body = `<html>Bearer ${CANARIES.apiKey} ${CANARIES.apiKey}</html>`;
    sandbox.service.faults.add({ status: 401, body, times: 3 });
    expect((await said(['sync', '--config', 't.yaml'])).code).toBe(3);
    const cut = `[{"customer":{"email":"${CANARIES.email}"},"link":{"password":"${CANARIES.linkPassword}`;
    sandbox.service.faults.clear();
    sandbox.service.faults.add({ status: 200, body: cut, match: { event: 'leads' } });
    const { code, text } = await said(['sync', '--config', 't.yaml']);
    expect({ code, text }).toEqual({ code: 0, text: expect.stringContaining('which is not JSON') });
  });
});

it.skipIf(!hasRedis)('no canary is found where it may not be', async () => {
  const kept = [...(await filesAsText(dirname(place.dir))), ...(await tablesAsText(db)), ...(await redisAsText(redis))];
  const all = [...traces, ...kept];
  const leaks = found(all, ALLOWED);
  for (const name of new Set(all.map(({ place: where }) => where))) {
    recordCase({ suite: 'secrets', name, survived: !leaks.some((leak) => leak.endsWith(` in ${name}`)) });
  }
  expect(leaks).toEqual([]);
  // The search works: it finds the canaries that are allowed.
  const everywhere = found(all, {});
  for (const hit of [
    'ip in table leads',
    'email in table customers',
    'ip in table quarantine',
    'ip in file work/out.ndjson',
  ]) {
    expect(everywhere).toContain(hit);
  }
  expect(everywhere.some((hit) => /^ip in file work\/lake\/.*parquet$/.test(hit))).toBe(true);
  expect(kept.filter(({ place: where }) => where === 'redis').length).toBeGreaterThan(3);
  expect(traces.length).toBeGreaterThan(LEAVES.length);
});
