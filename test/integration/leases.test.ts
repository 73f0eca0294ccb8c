import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { holderOf } from '../../src/cursor/database/holders.ts';
import { connect, type Database } from '../../src/cursor/database/index.ts';
import type { Sql } from '../../src/cursor/database/sql.ts';
import { acquireLease, checkFence, type Lease } from '../../src/cursor/leases.ts';
import { type Fault, RetryLater } from '../../src/model/errors.ts';
import { openEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { newSource } from '../support/sink-harness.ts';

const { db, url } = await forThisFile(openEngine());

const fence = (lease: Pick<Lease, 'source' | 'stream' | 'epoch'>) => db.transaction((tx) => checkFence(tx, lease));
const faultOf = (work: Promise<unknown>): Promise<Fault> =>
  work.then(
    () => Promise.reject(new Error('it was not refused')),
    (error: Fault) => error,
  );

/** Ages the lease as if it had been renewed so many seconds ago. */
const age = (source: string, seconds: number) =>
  db.query({
    text: 'update tributary.leases set expires_at = expires_at - make_interval(secs => $2) where source = $1',
    values: [source, seconds],
  });

const secondsLeft = async (source: string): Promise<number> => {
  const text =
    'select extract(epoch from expires_at - clock_timestamp())::float8 as left from tributary.leases where source = $1';
  return (await db.query<{ left: number }>({ text, values: [source] }))[0]?.left ?? Number.NaN;
};

it('goes to exactly one of many concurrent callers', async () => {
  const crowd = Array.from({ length: 6 }, () => connect({ url: url, max: 1 }));
  const source = newSource();
  const asked = await Promise.allSettled(crowd.map((one, i) => acquireLease(one, source, 'clicks', `number ${i}`)));
  expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  await Promise.all(crowd.map((one) => one.close()));
});

it('belongs to one stream of one source', async () => {
  const source = newSource();
  await acquireLease(db, source, 'clicks', 'one');
  await acquireLease(db, source, 'leads', 'two');
  await acquireLease(db, newSource(), 'clicks', 'three');
});

it('gets a higher epoch with every holder, and only the newest passes the fence', async () => {
  const source = newSource();
  const first = await acquireLease(db, source, 'sales', 'first');
  await fence(first);
  await first.release();
  const second = await acquireLease(db, source, 'sales', 'second');
  expect(second.epoch).toBeGreaterThan(first.epoch);
  await fence(second);
  expect(await faultOf(fence(first))).toBeInstanceOf(RetryLater);
  await first.release();
  await fence(second);
});

it('cannot commit once it has expired, even if no other holder took it', async () => {
  const lease = await acquireLease(db, newSource(), 'clicks', 'sleeper');
  await age(lease.source, 61);
  const fault = await faultOf(fence(lease));
  expect(fault).toBeInstanceOf(RetryLater);
  expect(fault.describe()).toMatch(
    /source-\d+\/clicks: .*lost its lease on the stream[\s\S]*kept: .*not written[\s\S]*next: .*run again/,
  );
});

it('is renewed by a commit, so that it does not expire during a long one', async () => {
  const lease = await acquireLease(db, newSource(), 'clicks', 'busy');
  await age(lease.source, 50);
  await fence(lease);
  expect(await secondsLeft(lease.source)).toBeGreaterThan(55);
});

it('cannot be taken over during a commit', async () => {
  const lease = await acquireLease(db, newSource(), 'clicks', 'slow');
  const commit = await db.begin();
  await checkFence(commit, lease);
  // The other waits for the commit, and then finds the lease renewed.
  const other = faultOf(acquireLease(db, lease.source, 'clicks', 'impatient'));
  await commit.commit();
  expect((await other).message).toMatch(/^slow is writing this stream now/);
});

it('is not reacquired by a renewal that is slower than the release', async () => {
  const source = newSource();
  let goOn = (): void => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const renewals: Array<Promise<unknown>> = [];
  // A query while the test's clock runs is a renewal: it is held until released.
  let isClockRunning = false;
  const slow: Database = {
    ...db,
    query<T extends object>(sql: Sql) {
      if (!isClockRunning) return db.query<T>(sql);
      const renewal = held.then(() => db.query<T>(sql));
      renewals.push(renewal);
      return renewal;
    },
  };
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const lease = await acquireLease(slow, source, 'clicks', 'one');
    isClockRunning = true;
    vi.advanceTimersByTime(15_000);
    isClockRunning = false;
    await lease.release();
  } finally {
    vi.useRealTimers();
  }
  goOn();
  await Promise.all(renewals);
  expect(renewals).toHaveLength(1);
  expect(await secondsLeft(source)).toBeLessThanOrEqual(0);
});

it('uses at most one connection for renewals, however long a commit locks the row', async () => {
  const few = connect({ url: url, max: 3 });
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(async () => {
    vi.useRealTimers();
    await few.close();
  });
  const lease = await acquireLease(few, newSource(), 'clicks', 'slow');
  const commit = await few.begin();
  await checkFence(commit, lease);
  // A commit of two minutes: with one waiting renewal each, the pool would be exhausted and this query would hang.
  for (let renewals = 0; renewals < 8; renewals += 1) vi.advanceTimersByTime(15_000);
  const others = Promise.all([1, 2].map(() => few.query({ text: 'select pg_sleep(0.05)' })));
  const answered = await Promise.race([others.then(() => true), sleep(5000, false)]);
  await commit.commit();
  await lease.release();
  await others;
  expect(answered).toBe(true);
});

it('is renewed soon after a commit that was longer than the lease', async () => {
  const lease = await acquireLease(db, newSource(), 'clicks', 'slow');
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const long = await acquireLease(db, newSource(), 'clicks', 'slower');
  const commit = await db.begin();
  await checkFence(commit, long);
  vi.advanceTimersByTime(61_000);
  await sleep(200);
  await commit.query({
    text: 'update tributary.leases set expires_at = expires_at - make_interval(secs => 61) where source = $1',
    values: [long.source],
  });
  // A caller meanwhile is refused at once, and does not wait for the row.
  expect((await faultOf(acquireLease(db, long.source, 'clicks', 'impatient'))).message).toMatch(/^slower is writing/);
  await commit.commit();
  vi.advanceTimersByTime(5000);
  await vi.waitUntil(async () => (await secondsLeft(long.source)) > 55, { timeout: 5000 });
  await fence(long);
  await long.release();
  await lease.release();
});

it('of another container with our host name is neither presumed dead nor released as our own', async () => {
  const source = newSource();
  const [, ours = ''] = /(process \d+ on .*)\)$/.exec(holderOf('worker')) ?? [];
  // The same host name, and a process id that does not exist here: its machine has other processes.
  const elsewhere = `tributary worker (${ours.replace(/process \d+/, 'process 4194304').replace(/[0-9a-f]/g, '0')})`;
  await acquireLease(db, source, 'clicks', `tributary worker (process 4194304 on ${hostname()})`);
  await expect(acquireLease(db, source, 'clicks', 'x')).rejects.toThrow(/is writing/);
  await acquireLease(db, source, 'leads', elsewhere);
  await expect(acquireLease(db, source, 'leads', 'x')).rejects.toThrow(/is writing/);
});

it('has a distinct holder in every process, even with equal host name and process id', async () => {
  const script = `import { holderOf } from '${new URL('../../src/cursor/database/holders.ts', import.meta.url)}';
    Object.defineProperty(process, 'pid', { value: 1 }); console.log(holderOf('worker'));`;
  const names = [1, 2].map(() =>
    execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], { encoding: 'utf8' }),
  );
  expect(names[0]).toMatch(/process 1 on/);
  expect(new Set(names).size).toBe(2);
});

it('of a killed local process is taken over at once; of a running one it is not', async () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  await once(child, 'spawn');
  const source = newSource();
  const holder = holderOf('sync').replace(`process ${process.pid}`, `process ${child.pid}`);
  const held = await acquireLease(db, source, 'clicks', holder);

  const fault = await faultOf(acquireLease(db, source, 'clicks', holderOf('sync')));
  expect(fault).toBeInstanceOf(RetryLater);
  expect(fault.message).toBe(`${holder} is writing this stream now`);

  child.kill('SIGKILL');
  await once(child, 'exit');
  const askers = [1, 2, 3].map(() => acquireLease(db, source, 'clicks', holderOf('sync')));
  const taken = (await Promise.allSettled(askers)).filter((result) => result.status === 'fulfilled');
  expect(taken).toHaveLength(1);
  expect(taken[0]?.value.epoch).toBeGreaterThan(held.epoch);
  await expect(fence(held)).rejects.toThrow(RetryLater);
});

it('that was given away is not reacquired by its own renewal, which would deadlock', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const lease = await acquireLease(db, newSource(), 'clicks', holderOf('backfill'), { givesWay: true });
  const before = lease.epoch;
  // No other holder takes it: the one that requested it was killed.
  const away = lease.giveWay(AbortSignal.timeout(10_000));
  while ((await secondsLeft(lease.source)) > 0);
  vi.advanceTimersByTime(15_000);
  await away;
  expect(lease.epoch).toBeGreaterThan(before);
  await fence(lease);
  await lease.release();
});

it('names its holder, and a remedy', async () => {
  const source = newSource();
  await acquireLease(db, source, 'leads', holderOf('sync'));
  await age(source, 20);
  const fault = await faultOf(acquireLease(db, source, 'leads', holderOf('backfill')));
  const [what, kept, next] = fault.describe().split('\n');
  expect(what).toBe(`${source}/leads: ${holderOf('sync')} is writing this stream now`);
  expect(kept).toBe('kept: everything; nothing was read or written');
  expect(next).toMatch(
    /^next: wait for it to finish, or, if it was killed, (39|40) s for its lease to end; then run again$/,
  );
});
