import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Finished, freshPlace, longLines, type Place } from '../support/cli.ts';
import { plain, runOnTerminal } from '../support/pty.ts';

const SECRETS = {
  KEY: 'canary-key-4711',
  SALT: 'canary-salt-which-is-long',
  TOKEN: 'canary-token-of-the-page',
  DB: 'postgresql://ann:canary-password@db.example.com/warehouse?sslpassword=canary-parameter',
  REDIS: 'rediss://default:canary-redis@queue.example.com:6380/2',
};

let place: Place;
beforeAll(async () => {
  place = await freshPlace();
  await place.config(`
sources:
  main:
    baseUrl: https://api.example.com
    apiKey: \${KEY}
    plan: pro
    links: { every: 1d }
    streams: { leads: { every: 90s, lookback: 2h, filters: { country: [US, CA], qr: true } } }
sinks: { warehouse: { type: postgres, url: "\${DB}", keep: 400d } }
state: { url: "\${DB}" }
queue: { url: "\${REDIS}" }
privacy: { ip: hash, salt: "\${SALT}" }
http: { token: "\${TOKEN}" }
`);
});

const config = async (...args: string[]): Promise<Finished> => {
  const ended = await place.call(['config', ...args, '--config', 't.yaml'], SECRETS);
  expect(ended.text).not.toContain('canary');
  return ended;
};

describe('config', () => {
  it('print shows the parsed config, with every secret masked', async () => {
    const { code, stdout, stderr } = await config('print');
    expect([code, stderr]).toEqual([0, '']);
    expect(parse(stdout)).toMatchObject({
      sources: {
        main: {
          baseUrl: 'https://api.example.com',
          apiKey: '***',
          requestsPerSecond: 2,
          since: '30d',
          links: { every: '1d', maxLag: '49h' },
          streams: {
            leads: { every: '90s', lookback: '2h', settle: '10m', filters: { country: 'US,CA', qr: 'true' } },
          },
        },
      },
      sinks: { warehouse: { url: 'postgresql://ann:***@db.example.com:5432/warehouse', keep: '400d' } },
      queue: { url: 'rediss://***@queue.example.com:6380/2' },
      privacy: { ip: 'hash', salt: '***', customer: 'keep' },
      http: { token: '***', port: 7070 },
    });
    expect(JSON.parse((await config('print', '--json')).stdout)).toMatchObject(parse(stdout) as object);
  });

  it('check names deprecated keys, on a terminal and in a pipe', async () => {
    const { code, stdout, stderr } = await config('check');
    expect([code, stdout]).toEqual([0, 't.yaml is valid: 1 source, 1 sink\n']);
    expect(stderr).toMatch(/^note: main\/leads: qr is deprecated/);
    const { text } = await runOnTerminal(place, ['config', 'check', '--config', 't.yaml'], { env: SECRETS });
    expect(plain(text)).toContain(stdout);
    expect(longLines(plain(text))).toEqual([]);
  });

  it('check names every fault with its line and column', async () => {
    await place.config('sources: { main: { plan: gold } }\nsinks: 7\n', 'bad.yaml');
    const { code, stdout, stderr } = await place.call(['config', 'check', '--config', 'bad.yaml']);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr.match(/^ {2}bad\.yaml:\d+:\d+ /gm)).toHaveLength(4);
  });
});
