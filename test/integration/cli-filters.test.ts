import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, it } from 'vitest';
import { freshPlace, type Place } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';

/** Filters on the command line, with the binary: invalid ones are refused before any request. */
describe('filters', () => {
  let place: Place;
  let sandbox: Sandbox;
  beforeAll(async () => {
    [place, sandbox] = await Promise.all([freshPlace(), smallSandbox({ rows: { clicks: 300, leads: 30, sales: 30 } })]);
  });

  const source = (streams: string, rest = 'plan: enterprise, requestsPerSecond: 200'): string =>
    `sources: { main: { baseUrl: "${sandbox.baseUrl}", apiKey: ${sandbox.apiKey}, ${rest}, since: 40d, streams: { ${streams} } } }\n`;
  const range = ['--config', 't.yaml', '--from', '40d', '--to', 'now'];

  it('refuses a filter of the command line with the same message, and sends no request', async () => {
    await place.config(source('clicks: { filters: { tagId: b } }'));
    const filter = (text: string) => place.run(['export', 'clicks', ...range, '--out', 'c.ndjson', '--filter', text]);
    const uk = await filter('country=UK');
    expect(uk).toMatchObject({ code: 2, stderr: expect.stringContaining('did you mean GB?') });
    // Combined with those of the config.
    expect(await filter('tagIds=a')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('conflicts with tagId'),
    });
    expect(sandbox.service.log.entries).toHaveLength(0);
  });

  it.each([
    ['export', ['clicks', '--out', 'n.ndjson', '--force']],
    ['backfill', ['clicks', '--dry-run']],
    ['verify', ['clicks']],
  ])('%s prints the same note as sync on a doubtful filter', async (command, args) => {
    await place.config(source('clicks: { filters: { qr: false } }'));
    const { stderr } = await place.run([command, ...args, ...range]);
    expect(stderr).toContain('note: main/clicks: qr is deprecated: use trigger');
  });

  it('prints it for a filter of the command line too', async () => {
    await place.config(source('clicks: {}'));
    const { code, stderr } = await place.run([
      'export',
      'clicks',
      ...range,
      '--out',
      'd.ndjson',
      '--filter',
      'qr=false',
    ]);
    expect(code).toBe(0);
    expect(stderr).toContain('qr is deprecated: use trigger');
  });

  /** Forwards everything except the filter. */
  async function startDeaf(): Promise<{ url: string; close(): Promise<unknown> }> {
    const deaf = createServer(async (request, response) => {
      const url = new URL(request.url ?? '/', sandbox.baseUrl);
      url.searchParams.delete('country');
      const answer = await fetch(url, { headers: { authorization: request.headers.authorization ?? '' } });
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    });
    await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve));
    const { port } = deaf.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, close: () => new Promise((resolve) => deaf.close(resolve)) };
  }
  const past = ['--config', 't.yaml', '--from', '40d', '--to', '1d'];

  it('export does not certify a filter that the service ignores, or a value that matches no event', async () => {
    const deaf = await startDeaf();
    const exported = (country: string) =>
      place.run(['export', 'clicks', ...past, '--out', 'f.ndjson', '--force', '--filter', `country=${country}`]);
    try {
      await place.config(source('clicks: {}').replace(sandbox.baseUrl, deaf.url));
      const ignored = await exported('US');
      expect(ignored.code).toBe(4);
      expect(ignored.text).toMatch(/ignored the filter country=US: it showed an event with "\w\w"/);
      expect(ignored.text).not.toContain('certified: every event');
    } finally {
      await deaf.close();
    }
    await place.config(source('clicks: {}'));
    const unmatched = await exported('TV');
    expect(unmatched.code).toBe(4);
    expect(unmatched.text).toContain('no event at all came for country=TV');
    expect(await exported('US')).toMatchObject({ code: 0, text: expect.stringContaining('certified: every event') });
  });

  it('sync, backfill and verify do not either, and status says why', async () => {
    const database = await freshDatabase();
    const deaf = await startDeaf();
    const run = async (...args: string[]) => {
      const { code, text } = await place.run([...args, '--config', 't.yaml']);
      return { code, text: text.replace(/\s+/g, ' ') };
    };
    const config = (filters: string, baseUrl = sandbox.baseUrl) =>
      place.config(
        `${source(`clicks: { filters: { ${filters} } }`).replace(sandbox.baseUrl, baseUrl)}sinks: { warehouse: { type: postgres } }\nstate: { url: "${database.url}" }\n`,
      );
    const certified = async () => {
      const { streams } = JSON.parse((await place.run(['status', '--json', '--config', 't.yaml'])).stdout) as {
        streams: Array<{ completeThrough: string | null; alsoComplete: object[]; coverage: Array<{ state: string }> }>;
      };
      return streams.map(({ completeThrough, alsoComplete }) => [completeThrough, alsoComplete]);
    };
    const [ignored, unmatched] = ['the service ignored the filter country=US', 'no event at all came for country=TV'];
    try {
      await config('country: US', deaf.url);
      for (const command of [['sync'], ['backfill', '--from', '40d', '--to', '1d']]) {
        const ended = await run(...command);
        expect([command[0], ended.code]).toEqual([command[0], 4]);
        expect(ended.text).toContain(ignored);
        expect(ended.text).not.toMatch(/main\/clicks .* 100%/);
      }
      const verified = await run('verify', '--from', '40d', '--to', '1d');
      expect(verified.code).toBe(4);
      expect(verified.text).toContain(`not comparable: `);
      expect(verified.text).toContain(ignored);
      // Time before the first such row stays complete; time after it is never certified.
      const [[through] = []] = await certified();
      expect(through === null || Date.parse(String(through)) < Date.now() - 86_400_000).toBe(true);
      expect((await run('status')).text).toContain(ignored);

      // Other filters restart the certification. A value that never matched an event is not certified, poll after poll.
      await config('country: TV', sandbox.baseUrl);
      for (const _ of [1, 2, 3]) {
        const ended = await run('sync', '--adopt');
        expect(ended.code).toBe(4);
        expect(ended.text).toContain(unmatched);
      }
      expect(await certified()).toEqual([[null, []]]);
      const emptied = await run('verify', '--from', '40d', '--to', '1d');
      expect([emptied.code, emptied.text.includes(unmatched)]).toEqual([4, true]);

      // A filter that the service applies is certified.
      await config('country: US');
      expect(await run('sync')).toMatchObject({ code: 0 });
      expect(await run('backfill', '--from', '40d', '--to', '1d', '--force')).toMatchObject({
        code: 0,
        text: expect.stringMatching(/main\/clicks .* 100%/),
      });

      // Once the service ignores a filter, it is no longer certified; earlier time stays so.
      const before = await certified();
      const [{ timestamp: _, ...click } = {}] = sandbox.service.events('clicks') as Array<Record<string, object>>;
      const other = { ...click.click, id: 'from-elsewhere', country: 'TV' };
      const at = new Date(Date.now() - 1_800_000).toISOString();
      sandbox.service.add('clicks', {
        ...click,
        click: other,
        country: 'TV',
        click_id: 'from-elsewhere',
        timestamp: at,
      });
      await config('country: US', deaf.url);
      const poll = await run('sync', '--adopt');
      expect([poll.code, poll.text.includes(ignored)]).toEqual([4, true]);
      expect(await certified()).toEqual(before);
    } finally {
      await deaf.close();
      await database.drop();
    }
  });

  it('notes that no column shows whether a filter is applied', async () => {
    await place.config(source('clicks: { filters: { root: false } }'));
    const { stderr } = await place.run(['backfill', 'clicks', ...past, '--dry-run']);
    expect(stderr).toContain('note: main/clicks: root: no column shows whether the service applies it');
  });

  it('HTTP answers name doubtful filters and filters that the service ignores', async () => {
    const [database, deaf, port] = await Promise.all([freshDatabase(), startDeaf(), freePort()]);
    const token = 'a-long-token-that-nobody-guesses';
    const filters = 'clicks: { every: 1h, filters: { qr: false, country: US } }';
    await place.config(
      `${source(filters).replace(sandbox.baseUrl, deaf.url)}sinks: { warehouse: { type: postgres } }
http: { port: ${port}, token: ${token} }\nstate: { url: "${database.url}" }\n`,
    );
    const room = place.start(['start', '--config', 't.yaml']);
    const ask = (path: string, body?: object): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}/api/${path}`, {
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      });
    const warning = 'main/clicks: qr is deprecated: use trigger';
    const asked = { from: '40d', to: '1d' };
    try {
      await room.saw(`http://127.0.0.1:${port}`);
      const synced = (await (await ask('sync', { wait: 60 })).json()) as { streams: Array<{ message: string }> };
      expect(synced).toMatchObject({ done: true, ok: false, warnings: [warning], streams: [{ state: 'incomplete' }] });
      expect(synced.streams[0]?.message).toContain('ignored the filter country=US');
      expect(await (await ask('overview')).json()).toMatchObject({
        streams: [{ stream: 'clicks', warnings: [warning] }],
      });
      for (const path of ['backfills/price', 'backfills', 'verifications'])
        expect([path, await (await ask(path, asked)).json()]).toMatchObject([path, { warnings: [warning] }]);
      const exported = await ask('export/clicks?from=40d&to=1d&format=ndjson');
      expect(JSON.parse(exported.headers.get('x-tributary-warnings') ?? '')).toEqual([warning]);
      await exported.text();
    } finally {
      room.child.kill('SIGTERM');
      await room.done;
      await deaf.close();
      await database.drop();
    }
  });
});
