import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Session } from '../../src/http/api-types.ts';
import { freshPlace, type Place, type Running } from '../support/cli.ts';
import { listenTo } from '../support/http-room.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { until } from '../support/workers.ts';

/** `tributary start` as a container runs it: secrets come from files, and change while it runs. */
let place: Place;
let database: TestDatabase;
let running: Running;
let url: string;

const FIRST = 'the-first-token-of-the-owner';
const SECOND = 'the-second-token-of-the-owner';
const FILES = ['API_KEY', 'DATABASE_URL', 'OWNER_TOKEN'];
const env = Object.fromEntries(FILES.map((name) => [`${name}_FILE`, `${name}.secret`]));

const secret = (name: string, value: string): Promise<void> =>
  writeFile(join(place.dir, `${name}.secret`), `${value}\n`);

beforeAll(async () => {
  const sandbox = await smallSandbox({ rows: { clicks: 10, leads: 10, sales: 10 }, days: 5 });
  [place, database] = await Promise.all([freshPlace(), freshDatabase()]);
  await secret('API_KEY', sandbox.apiKey);
  await secret('DATABASE_URL', database.url);
  await secret('OWNER_TOKEN', FIRST);
  await writeConfig(sandbox.baseUrl);
  running = place.start(['start', '--config', 't.yaml'], env);
  url = /control room: (\S+)/.exec(await running.saw(/control room: \S+\n/))?.[1] ?? '';
});
afterAll(async () => {
  running.child.kill('SIGTERM');
  await running.done;
  await database.drop();
});

let baseUrl = '';
const writeConfig = async (at = baseUrl, http = `token: "\${OWNER_TOKEN}"`): Promise<void> => {
  baseUrl = at;
  await place.config(
    `sources: { main: { baseUrl: "${at}", apiKey: "\${API_KEY}", plan: enterprise, requestsPerSecond: 200, since: 30d } }
sinks: { warehouse: { type: postgres } }
state: { url: "\${DATABASE_URL}" }
http: { port: 0, ${http} }\n`,
  );
};

const statusWith = async (token: string, path = '/api/overview'): Promise<number> =>
  (await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })).status;

async function signIn(token: string): Promise<string> {
  const response = await fetch(`${url}/api/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  expect(((await response.json()) as Session).signedIn).toBe(true);
  return (response.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
}

describe('secrets from files', () => {
  it('are read if NAME is not set and NAME_FILE is; the variable itself wins', async () => {
    expect(await statusWith(FIRST)).toBe(200);
    await until('the key of the file was accepted', async () => {
      const runs = (await (
        await fetch(`${url}/api/runs?state=done`, { headers: { authorization: `Bearer ${FIRST}` } })
      ).json()) as { runs: unknown[] };
      return runs.runs.length >= 3;
    });
    const ended = await place.run(['config', 'check', '--config', 't.yaml'], { ...env, OWNER_TOKEN: 'too short' });
    expect([ended.code, ended.text]).toEqual([2, expect.stringMatching(/at least 16 characters/)]);
  });

  it('that cannot be read are named with a remedy, and nothing starts', async () => {
    const missing = { ...env, OWNER_TOKEN_FILE: 'nowhere.secret' };
    const ended = await place.run(['start', '--config', 't.yaml'], missing);
    expect([ended.code, ended.stderr]).toEqual([
      2,
      expect.stringMatching(/OWNER_TOKEN_FILE names the file nowhere\.secret.*ENOENT[\s\S]*next: /),
    ]);
  });
});

describe('SIGHUP', () => {
  it('changes the token: the old one, its sessions and their event streams end, and the server continues', async () => {
    const cookie = await signIn(FIRST);
    const stream = await listenTo(url, undefined, { cookie });
    await secret('OWNER_TOKEN', SECOND);
    running.child.kill('SIGHUP');
    await until('the new token is known', async () => (await statusWith(SECOND)) === 200);
    expect(await statusWith(FIRST)).toBe(401);
    expect((await fetch(`${url}/api/overview`, { headers: { cookie } })).status).toBe(401);
    await stream.ended;
  });

  it('ends event streams of a token that was replaced or got another role', async () => {
    const one = (token: string, role: string) =>
      writeConfig(baseUrl, `token: "\${OWNER_TOKEN}", tokens: { day: { token: ${token}, role: ${role} } }`);
    const [before, after] = ['a-token-of-the-day-shift', 'another-token-of-the-day'];
    await one(before, 'operator');
    running.child.kill('SIGHUP');
    await until('it is known', async () => (await statusWith(before)) === 200);
    const rotated = await listenTo(url, undefined, { authorization: `Bearer ${before}` });
    await one(after, 'operator');
    running.child.kill('SIGHUP');
    await rotated.ended;
    await until('the next is known', async () => (await statusWith(after)) === 200);
    const lowered = await listenTo(url, undefined, { authorization: `Bearer ${after}` });
    await one(after, 'metrics');
    running.child.kill('SIGHUP');
    await lowered.ended;
    expect(await statusWith(after)).toBe(403);
  });

  it('adds named tokens, and removes them', async () => {
    const TOKEN = 'a-token-of-the-night-shift';
    await writeConfig(baseUrl, `token: "\${OWNER_TOKEN}", tokens: { night: { token: ${TOKEN}, role: read } }`);
    running.child.kill('SIGHUP');
    await until('it is known', async () => (await statusWith(TOKEN)) === 200);
    expect(await statusWith(TOKEN, '/api/audit')).toBe(403);
    await writeConfig();
    running.child.kill('SIGHUP');
    await until('it is gone', async () => (await statusWith(TOKEN)) === 401);
    expect(await statusWith(SECOND)).toBe(200);
  });

  it('with an invalid config changes nothing, and says so', async () => {
    await writeConfig(baseUrl, 'token: short');
    running.child.kill('SIGHUP');
    const printed = await running.saw(/the config cannot be read; nothing was changed/);
    expect(await statusWith(SECOND)).toBe(200);
    for (const known of [FIRST, SECOND]) expect(printed).not.toContain(known);
  });
});
