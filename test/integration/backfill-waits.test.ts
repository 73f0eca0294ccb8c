import { describe, expect, it } from 'vitest';
import { acquireLease } from '../../src/cursor/leases.ts';
import { commandsOn } from '../support/commands.ts';

/** A backfill while a long sync holds the stream, with the built binary. */

const { place, sandbox, db } = await commandsOn({ days: 20 }, { settings: { since: '10d' } });

const BACKFILL = ['backfill', 'clicks', '--from', '18d', '--to', '12d', '--config', 't.yaml'];
const isHeld = async (): Promise<boolean> => {
  const [{ table } = { table: null }] = await db.query<{ table: string | null }>({
    text: `select to_regclass('tributary.leases')::text as table`,
  });
  if (table === null) return false;
  const held = await db.query({
    text: `select from tributary.leases where stream = 'clicks' and expires_at > clock_timestamp()`,
  });
  return held.length > 0;
};

describe('a backfill during a long first sync', () => {
  it('waits, names the holder once, and suggests --queue', async () => {
    sandbox.service.faults.add({ delayMs: 6000, times: 2, match: { event: 'clicks' } });
    const sync = place.start(['sync', 'clicks', '--config', 't.yaml']);
    await expect.poll(isHeld, { timeout: 20_000 }).toBe(true);
    const backfill = place.start(BACKFILL);
    await backfill.saw('main/clicks: waiting for tributary sync (process ');
    expect(sync.child.exitCode).toBeNull();
    const [synced, filled] = await Promise.all([sync.done, backfill.done]);
    expect([synced.code, filled.code]).toEqual([0, 0]);
    expect(filled.stderr.match(/waiting for/g)).toHaveLength(1);
    expect(filled.stderr).toContain(`(process ${sync.pid} on `);
    expect(filled.stderr).toContain('with --queue, the workers would do it');
    expect(filled.stdout).toMatch(/^main\/clicks .* 100%$/m);
  });

  it('with --no-wait ends with exit code 4 and names the holder', async () => {
    const lease = await acquireLease(db, 'main', 'clicks', 'tributary worker (process 1 on elsewhere)');
    const { code, stderr } = await place.run([...BACKFILL, '--no-wait']);
    await lease.release();
    expect(code).toBe(4);
    expect(stderr).toContain('tributary worker (process 1 on elsewhere) is writing this stream now');
    expect(stderr).toContain('--queue');
    expect(stderr).not.toContain('waiting for');
  });

  it('can be interrupted while it waits, and loses nothing', async () => {
    const lease = await acquireLease(db, 'main', 'clicks', 'tributary worker (process 1 on elsewhere)');
    const backfill = place.start(BACKFILL);
    await backfill.saw('waiting for tributary worker (process 1 on elsewhere)');
    backfill.child.kill('SIGINT');
    expect((await backfill.done).code).toBe(130);
    await lease.release();
    expect((await place.run(BACKFILL)).code).toBe(0);
  });
});
