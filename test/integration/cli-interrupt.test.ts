import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { openEmbedded } from '../../src/cursor/embedded/index.ts';
import { lookAtPostmaster } from '../../src/cursor/embedded/server.ts';
import { freshPlace, type Place, type Running } from '../support/cli.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase } from '../support/postgres.ts';
import { allPages, idsOf, smallSandbox, sorted } from '../support/sandbox.ts';
import { silentLog } from '../support/silent-log.ts';

const CLICKS = 9000;

const config = (sandbox: Sandbox, perSecond: number, rest = ''): string =>
  `sources: { main: { baseUrl: "${sandbox.baseUrl}", apiKey: ${sandbox.apiKey}, plan: enterprise, requestsPerSecond: ${perSecond}, since: 40d, streams: { clicks: {} } } }\n${rest}`;

async function asked(sandbox: Sandbox, times: number): Promise<void> {
  while (sandbox.service.log.entries.length < times) await sleep(10);
}

/** A slow sync on the embedded database, and what other processes may do at the same time. */
describe('a running sync', () => {
  let place: Place;
  let sandbox: Sandbox;
  let slow: Running;

  beforeAll(async () => {
    [place, sandbox] = await Promise.all([freshPlace(), smallSandbox({ rows: { clicks: CLICKS } })]);
    await place.config(config(sandbox, 1), 'slow.yaml');
    await place.config(config(sandbox, 100), 'fast.yaml');
    slow = place.start(['sync', '--config', 'slow.yaml']);
    // By the third request, the rows of the first are written.
    await asked(sandbox, 3);
  });

  it('lets status read the embedded database', async () => {
    const { code, stdout, stderr } = await place.run(['status', '--config', 'slow.yaml']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^main\/clicks +\S+ +not certified yet .*running \d{4}-\d\d-\d\d \d\d:\d\d$/m);
    expect(slow.child.exitCode).toBeNull();
  });

  it('is not disturbed by a second one, which is refused and names the holder', async () => {
    const { code, stdout, stderr } = await place.run(['sync', '--config', 'fast.yaml']);
    expect([code, stdout]).toEqual([4, '']);
    expect(stderr).toContain(`is in use by another process: pid ${slow.pid} (tributary sync --config slow.yaml)`);
    expect(stderr).toContain('kept: nothing was changed');
    expect(slow.child.exitCode).toBeNull();
  });

  it('stops at Ctrl-C with what it has, says so, and stops the server', async () => {
    await asked(sandbox, 5);
    slow.child.kill('SIGINT');
    const { code, stdout, stderr } = await slow.done;
    expect(code).toBe(130);
    expect(stderr).toContain('stopping; press Ctrl-C again to stop immediately\n');
    expect(stderr).toMatch(
      /^main\/clicks .*interrupted\nkept: .*\nnext: run it again: it continues from what is certified$/m,
    );
    expect(stdout).toMatch(/^main\/clicks +[1-9]/m);
    expect((await lookAtPostmaster(join(place.dir, '.tributary/postgres'))).state).toBe('absent');
  });

  it('is completed by the next one: the same set of events as the service has', async () => {
    const before = sandbox.service.log.entries.length;
    const { code, text } = await place.run(['sync', '--config', 'fast.yaml']);
    expect(code, text).toBe(0);
    expect(sandbox.service.log.entries.length).toBeGreaterThan(before);
    const server = await openEmbedded({ dir: join(place.dir, '.tributary'), log: silentLog, attach: true });
    const db = connect({ url: server.url, max: 1 });
    const stored = await db.query<{ event_id: string }>({ text: 'select event_id from attribution.clicks' });
    await db.close();
    await server.close();
    const served = (await allPages(sandbox, { event: 'clicks', sortOrder: 'asc' })).flatMap(idsOf);
    expect(served).toHaveLength(CLICKS);
    expect(sorted(stored.map((row) => row.event_id))).toEqual(sorted(served));
  });
});

it('stops immediately at the second signal', async () => {
  const [place, sandbox, database] = await Promise.all([freshPlace(), smallSandbox(), freshDatabase()]);
  await place.config(config(sandbox, 0.05, `state: { url: "${database.url}" }`));
  const slow = place.start(['sync', '--config', 't.yaml']);
  await asked(sandbox, 1);
  slow.child.kill('SIGINT');
  slow.child.kill('SIGTERM');
  const { code, text } = await slow.done;
  expect([code, text]).toEqual([130, 'stopping; press Ctrl-C again to stop immediately\n']);
  await database.drop();
});
