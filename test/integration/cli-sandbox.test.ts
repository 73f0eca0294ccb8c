import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { freshPlace, type Running } from '../support/cli.ts';

const place = await freshPlace();
const SMALL = ['--clicks', '50', '--leads', '5', '--sales', '5'];

/** A sandbox in its own process, as a person or a script starts it. */
async function sandbox(...args: string[]): Promise<{ process: Running; baseUrl: string; apiKey: string }> {
  const process = place.start(['sandbox', '--json', '--port', '0', ...SMALL, ...args]);
  let line = '';
  process.child.stdout?.on('data', (chunk: string) => {
    line += chunk;
  });
  await process.saw('\n');
  return { process, ...(JSON.parse(line) as { baseUrl: string; apiKey: string }) };
}

async function events(baseUrl: string, apiKey: string, query: string): Promise<Array<{ timestamp: string }>> {
  const response = await fetch(`${baseUrl}/events?${query}`, { headers: { authorization: `Bearer ${apiKey}` } });
  expect(response.status).toBe(200);
  return (await response.json()) as Array<{ timestamp: string }>;
}

describe('tributary sandbox', () => {
  it('prints one line of JSON, answers, and exits with 0 on SIGTERM', async () => {
    const { process, baseUrl, apiKey } = await sandbox();
    expect(baseUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await events(baseUrl, apiKey, 'interval=all&limit=1000')).toHaveLength(50);
    process.child.kill('SIGTERM');
    const { code, stdout } = await process.done;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\{.*\}\n$/);
    expect(JSON.parse(stdout)).toMatchObject({ format: 1, command: 'sandbox', baseUrl, apiKey });
    const refused = new Promise((resolve) => {
      connect(Number(new URL(baseUrl).port), '127.0.0.1').once('error', resolve);
    });
    expect(await refused).toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('applies the given traits', async () => {
    const odd = await sandbox('--trait', 'limitCap=7', '--trait', 'sortOrder=ignored', '--trait', 'noAliases');
    const rows = await events(odd.baseUrl, odd.apiKey, 'interval=all&limit=1000&sortOrder=asc');
    expect(rows).toHaveLength(7);
    const times = rows.map(({ timestamp }) => timestamp);
    expect(times).toEqual([...times].sort().reverse());
    expect(rows.filter((row) => 'click_id' in row)).toEqual([]);
    odd.process.child.kill('SIGINT');
    expect((await odd.process.done).code).toBe(0);
  });

  it('prints how to try it', async () => {
    const process = place.start(['sandbox', '--port', '0', ...SMALL]);
    await process.saw(
      /try: curl -H 'Authorization: Bearer sandbox-key' 'http:\/\/127\.0\.0\.1:\d+\/events\?limit=1'\n/,
    );
    process.child.kill('SIGTERM');
    expect((await process.done).code).toBe(0);
  });

  it('reports a port in use', async () => {
    const { process, baseUrl } = await sandbox();
    const { port } = new URL(baseUrl);
    const { code, text } = await place.run(['sandbox', '--port', port]);
    expect([code, text]).toEqual([
      2,
      `the sandbox cannot listen on port ${port}: another program listens there\nnext: choose another with --port N; --port 0 uses any free port\n`,
    ]);
    process.child.kill('SIGTERM');
    await process.done;
  });

  it.each([
    [['--port', '65536'], '--port must be a whole number from 0 to 65535'],
    [['--port', '80.5'], '--port must be a whole number from 0 to 65535'],
    [['--port', '0x50'], '--port must be a whole number from 0 to 65535'],
    [['--clicks', '-1'], '--clicks must be a whole number from 0 to 2000000'],
    [['--days', ''], '--days must be a whole number from 0 to 36500'],
    [['--live', 'fast'], '--live must be a number from 0 to 10000'],
    [['--plan', 'gold'], "option '--plan <NAME>' argument 'gold' is invalid."],
  ])('refuses %j', async (args, message) => {
    const { code, stdout, stderr } = await place.run(['sandbox', ...args]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
    expect(stderr.trim().split('\n').length).toBeLessThanOrEqual(2);
  });
});
