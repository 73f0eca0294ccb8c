import { afterAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { type Finished, freshPlace, type Place } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { freshDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';

/** Neither may appear in a log, so every run of this file searches for them at the most verbose level. */
const KEY = 'canary-key-4711';
const PASSWORD = 'canary-password-0815';

const database = await freshDatabase();
const sandbox = await smallSandbox({ apiKey: KEY, rows: { clicks: 20, leads: 5, sales: 5 } });
afterAll(() => database.drop());

interface Settings {
  baseUrl?: string;
  plan?: string;
  /** An extra line in the source. */
  line?: string;
  rest?: string;
}

const configOf = ({ baseUrl = sandbox.baseUrl, plan = 'advanced', line = '', rest = '' }: Settings): string =>
  `sources:\n  main:\n    baseUrl: ${baseUrl}\n    apiKey: \${KEY}\n    plan: ${plan}\n    since: 40d\n${line}\n${rest}\n`;

async function sync(settings: Settings, args: string[] = [], env: Record<string, string> = {}) {
  const place = await freshPlace();
  await place.config(configOf(settings));
  const ended = await place.run(['sync', '--config', 't.yaml', ...args], { KEY, TRIBUTARY_LOG: 'trace', ...env });
  for (const secret of [KEY, PASSWORD, env.KEY ?? KEY]) expect(ended.text).not.toContain(secret);
  return { ...ended, place, message: messageOf(ended) };
}

/** The final output of a command: log lines are JSON, and retries were reported while it ran. */
function messageOf({ stdout, stderr }: Finished): string {
  expect(stdout).toBe('');
  expect(stderr).not.toMatch(/^ +at /m);
  expect(stderr).not.toContain('bug');
  return stderr
    .split('\n')
    .filter((line) => !/^\{|: attempt \d+( in .*)?, trying again/.test(line))
    .join('\n');
}

const untouched = async (place: Place): Promise<void> => expect((await place.files()).dir).toEqual(['t.yaml']);

describe('detected before anything is touched', () => {
  it.each<[string, Settings, string[], string]>([
    [
      'bad config',
      { line: '    sinse: 30d', plan: 'gold' },
      [],
      'the config has 2 errors:\n  t.yaml:5:5 sources.main.plan: must be one of free, pro, business, advanced, enterprise\n  t.yaml:7:5 sources.main.sinse: is not a key of the config: did you mean since?\nnext: fix',
    ],
    [
      'a stream that is not configured',
      { line: '    streams: { clicks: {} }' },
      ['leads'],
      'no source of the config syncs leads\nnext: add leads under streams:',
    ],
  ])('%s', async (_, settings, args, wanted) => {
    const { code, message, place } = await sync(settings, args);
    expect(message.slice(0, wanted.length)).toBe(wanted);
    expect(code).toBe(2);
    await untouched(place);
  });

  it('a config without a source', async () => {
    const place = await freshPlace();
    await place.config('');
    const { code, text } = await place.run(['sync', '--config', 't.yaml']);
    expect([code, text]).toEqual([
      2,
      expect.stringMatching(/^t\.yaml defines no source\nnext: add one under sources:/),
    ]);
    await untouched(place);
  });
});

describe('refused by the service', () => {
  const onDatabase = { rest: `state: { url: "${database.url}" }` };

  /** Retried for a while with pauses before it fails: meanwhile the other tests run. */
  const unreachable = (async () => {
    const [port, own] = await Promise.all([freePort(), freshDatabase()]);
    const baseUrl = `http://127.0.0.1:${port}`;
    const ended = await sync({ baseUrl, rest: `state: { url: "${own.url}" }` });
    return { port, ...ended, schemas: await schemas(own.url) };
  })();
  unreachable.catch(() => {}); // The test that awaits it fails.

  async function schemas(url = database.url): Promise<unknown[]> {
    const db = connect({ url, max: 1 });
    const found = await db.query({ text: "select nspname from pg_namespace where nspname = 'attribution'" });
    await db.close();
    return found;
  }

  it('a wrong key: one message for the three streams, and no table', async () => {
    const { code, message, place } = await sync(onDatabase, [], { KEY: `wrong-${KEY}` });
    expect(message).toMatch(
      /^main\/(\w+): the service answered 401: .*\nkept: nothing had been written yet\nnext: check apiKey: it may be mistyped, revoked or expired; the service explains it at \S+\nalso: main\/\w+, main\/\w+\n$/,
    );
    expect(code).toBe(3);
    expect(await schemas()).toEqual([]);
    await untouched(place);
  });

  it('an unreachable service: one message, try again later', { timeout: 180_000 }, async () => {
    const { code, message, stderr, port, schemas } = await unreachable;
    expect(message).toMatch(new RegExp(`^main/\\w+.*: .*127\\.0\\.0\\.1:${port}: nothing listens there`));
    expect(message).toContain('\nnext: check baseUrl and its port, or wait for the service');
    expect(message.match(/nothing listens there/g)).toHaveLength(1);
    // Each of the three streams was tried six times within half a minute: one line for each.
    expect(stderr.match(/attempt \d+( in .*)?, trying again/g)).toHaveLength(3);
    expect(code).toBe(4);
    expect(schemas).toEqual([]);
  });
});
