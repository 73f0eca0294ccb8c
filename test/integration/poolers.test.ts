import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import { freshPlace, type Place } from '../support/cli.ts';
import { configFor, configText, expectComplete } from '../support/engine.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';
import { hasPgBouncer, startPgBouncer } from '../support/servers.ts';

/** Through a pooler that gives each transaction another connection. */

describe.runIf(hasPgBouncer)('PgBouncer in transaction mode', () => {
  let home: TestDatabase;
  let bouncer: Awaited<ReturnType<typeof startPgBouncer>>;
  let pooled: Database;
  let sandbox: Sandbox;
  let place: Place;

  beforeAll(async () => {
    [home, sandbox, place] = await Promise.all([
      freshDatabase(),
      smallSandbox({ rows: { clicks: 1200, leads: 60, sales: 60 } }),
      freshPlace(),
    ]);
    bouncer = await startPgBouncer(home.url);
    pooled = connect({ url: bouncer.url });
  });
  afterAll(async () => {
    await pooled.close();
    await bouncer.close();
    await home.drop();
  });

  const write = (state: { url: string; directUrl?: string }) =>
    place.config(JSON.stringify({ ...JSON.parse(configText(state, sandbox, { name: 'main' })), state }));

  it('syncs completely, several streams at once, and status reports it', async () => {
    await write({ url: bouncer.url });
    const synced = await place.run(['sync', '--config', 't.yaml']);
    expect(synced.code, synced.text).toBe(0);
    await expectComplete(pooled, configFor({ url: bouncer.url }, sandbox, { name: 'main' }), sandbox);
    expect(await place.run(['status', '--config', 't.yaml'])).toMatchObject({ code: 0 });
  });

  it('releases the locks of a process that hangs, and leaves no setting on a shared connection', async () => {
    const show = { text: 'show idle_in_transaction_session_timeout' };
    expect(await pooled.transaction((tx) => tx.query(show))).toEqual([{ idle_in_transaction_session_timeout: '5min' }]);
    const direct = connect({ url: home.url });
    const usual = await direct.query({ text: 'show synchronous_commit' });
    await direct.close();
    const seen = await Promise.all(
      Array.from({ length: 8 }, () =>
        pooled.query({
          text: 'select pg_sleep(0.05), current_setting($1) as synchronous_commit',
          values: ['synchronous_commit'],
        }),
      ),
    );
    for (const [row] of seen) expect([{ synchronous_commit: row?.synchronous_commit }]).toEqual(usual);
  });

  it('is refused at startup by a worker whose queue would be behind it, and by doctor', async () => {
    await write({ url: bouncer.url });
    const refused = await place.run(['worker', '--config', 't.yaml']);
    expect(refused.code, refused.text).toBe(2);
    expect(refused.text).toMatch(/connection pooler[\s\S]*state\.directUrl/);
    const doctor = await place.run(['doctor', '--config', 't.yaml']);
    expect(doctor.code, doctor.text).toBe(2);
    expect(doctor.text).toMatch(/connection pooler[\s\S]*state\.directUrl/);
  });

  it('serves a worker with a direct URL for its queue', async () => {
    await write({ url: bouncer.url, directUrl: home.url });
    expect(await place.run(['doctor', '--config', 't.yaml'])).toMatchObject({ code: 0 });
    const worker = place.start(['worker', '--config', 't.yaml']);
    await worker.saw(/run ended|complete|done/);
    worker.child.kill('SIGTERM');
    const { code, text } = await worker.done;
    expect(code, text).toBe(0);
  });

  it('rejects a setting of the URL: the fault is named, and not retryable', async () => {
    await write({ url: withSetting(bouncer.url) });
    const refused = await place.run(['sync', '--config', 't.yaml']);
    expect(refused.code, refused.text).toBe(2);
    expect(refused.text).toMatch(/refuses the setting statement_timeout[\s\S]*ignore_startup_parameters/);
    expect(refused.text).not.toContain('run again');
  });

  it('is detected by a worker and by doctor even where it ignores settings', async () => {
    const lenient = await startPgBouncer(home.url, { ignores: ['options', 'statement_timeout', 'lock_timeout'] });
    try {
      await write({ url: withSetting(lenient.url) });
      for (const command of ['worker', 'doctor']) {
        const refused = await place.run([command, '--config', 't.yaml']);
        expect(refused.code, refused.text).toBe(2);
        expect(refused.text).toMatch(/connection pooler[\s\S]*state\.directUrl/);
      }
      await write({ url: withSetting(lenient.url), directUrl: home.url });
      const synced = await place.run(['sync', '--config', 't.yaml']);
      expect(synced.code, synced.text).toBe(0);
    } finally {
      await lenient.close();
    }
  });
});

const withSetting = (url: string): string => `${url}?statement_timeout=60000`;
