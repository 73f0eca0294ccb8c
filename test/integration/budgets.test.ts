import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createPacer } from '../../src/api/pacer.ts';
import type { Slots } from '../../src/api/slots.ts';
import { keyHashOf, readBudgets, readBudgetUse } from '../../src/cursor/budget-use.ts';
import { openSharedBudgets, type SharedBudgets } from '../../src/cursor/budgets.ts';
import { connect } from '../../src/cursor/database.ts';
import { RetryLater } from '../../src/model/errors.ts';
import { type Engine, openEngine } from '../support/engine.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { slotsSuite } from '../support/slots-suite.ts';

/** One row per key, on a real database. */

let skipped = 0;
const now = () => performance.now() + skipped;
let engine: Engine;
let shared: SharedBudgets;
beforeAll(async () => {
  engine = await openEngine();
  shared = openSharedBudgets(engine.db, now);
});
afterAll(async () => {
  await shared.close();
  await engine.close();
});

/** Time passes for a key when all its moments move into the past. */
const passed = (ms: number) => ({
  text: `
    update tributary.budgets set next_at = next_at - d, paused_until = paused_until - d, alone_until = alone_until - d,
      careful_until = careful_until - d, left_at = array(select one - d from unnest(left_at) as one),
      waits_until = array(select one - d from unnest(waits_until) as one)
    from make_interval(secs => $1::float8 / 1000) as d`,
  values: [ms],
});

async function pass(ms: number): Promise<void> {
  await engine.db.query(passed(ms));
  skipped += ms;
}

slotsSuite('the budget that processes share', async () => ({
  open: async (requestsPerSecond) => shared.slots(randomUUID(), requestsPerSecond),
  pass,
  now,
  toleranceMs: 120,
}));

/** Comes back as often as it is told to; returns how long it took. */
async function go(slots: Slots): Promise<number> {
  const began = now();
  for (;;) {
    const turn = await slots.ask('fresh', false);
    if (turn.granted) return now() - began;
    await pass(turn.waitMs);
  }
}

it('keeps the pace of the most careful of those who share a key, for as long as it asks', async () => {
  const key = randomUUID();
  const [careful, bold] = [shared.slots(key, 2), shared.slots(key, 8)];
  await go(bold);
  expect(await go(bold)).toBeLessThan(200);
  await go(careful);
  expect(await go(bold)).toBeGreaterThan(400);
  expect(await go(bold)).toBeGreaterThan(400);
  await pass(11_000);
  await go(bold);
  expect(await go(bold)).toBeLessThan(200);
});

it('hands out each slot once, however many ask at a time', async () => {
  const key = randomUUID();
  const lines = [0, 1, 2, 3].map(() => connect({ url: engine.url, max: 1 }));
  const all = lines.map((db) => openSharedBudgets(db));
  const began = performance.now();
  let granted = 0;
  await Promise.all(
    all.map(async (one) => {
      const slots = one.slots(key, 20);
      while (performance.now() - began < 2000) if ((await slots.ask('fresh', false)).granted) granted++;
    }),
  );
  expect(granted).toBeLessThanOrEqual(42);
  expect(granted).toBeGreaterThanOrEqual(34);
  const [use] = await readBudgetUse(engine.db, { keyHash: keyHashOf(key), minutes: 2, step: 2 });
  expect(use?.requests).toBe(granted);
  await Promise.all(all.map((one) => one.close()));
  await Promise.all(lines.map((db) => db.close()));
});

it('keeps the books of seven days, by key and minute', async () => {
  const key = randomUUID();
  const keyHash = keyHashOf(key);
  const add = (minutes: number, fresh: number) =>
    engine.db.query({
      text: `
        insert into tributary.budget_use (key_hash, minute, per_second, fresh, too_many)
        values ($1, date_trunc('minute', clock_timestamp()) - make_interval(mins => $2), 4, $3, 1)`,
      values: [keyHash, minutes, fresh],
    });
  await Promise.all([add(3, 120), add(4, 240), add(8 * 24 * 60, 10)]);
  const minutes = await readBudgetUse(engine.db, { keyHash });
  expect(minutes.map(({ requests, share }) => ({ requests, share }))).toEqual([
    { requests: 240, share: 1 },
    { requests: 120, share: 0.5 },
  ]);
  const week = { keyHash, minutes: 14 * 24 * 60, step: 14 * 24 * 60 };
  expect(await readBudgetUse(engine.db, week)).toMatchObject([{ requests: 370, tooManyRequests: 3 }]);
  await go(shared.slots(key, 4));
  expect(await readBudgetUse(engine.db, week)).toMatchObject([{ requests: 361, tooManyRequests: 2 }]);

  await shared.slots(key, 4).tooMany(9000);
  const mine = (await readBudgets(engine.db)).find((one) => one.keyHash === keyHash);
  expect(mine).toMatchObject({ perSecond: 4, pausedSeconds: expect.closeTo(9, 0) });
  expect(await readBudgetUse(engine.db, week)).toMatchObject([{ tooManyRequests: 3, pauses: 1 }]);
});

it('waits for a database that is away, and sends nothing until it is back and knows of the 429', async () => {
  const line = await startFaultProxy(engine.url);
  const db = connect({ url: line.url, max: 2 });
  const lonely = openSharedBudgets(db);
  const key = randomUUID();
  const slots = lonely.slots(key, 50);
  const turn = await slots.ask('fresh', false);
  if (!turn.granted) throw new Error('the first is granted');
  const pacer = createPacer({ requestsPerSecond: 50, slots });
  let ran = 0;
  const one = () => pacer.run('fresh', async () => void ran++);

  await line.fail({ kind: 'refuse' });
  await slots.tooMany(3000, turn);
  const fault: RetryLater = await one().catch((error) => error);
  expect(fault).toBeInstanceOf(RetryLater);
  expect(fault.describe()).toMatch(/budget, which all processes share, cannot be reached[\s\S]*no request was sent/);

  const patient = one();
  await sleep(500);
  await line.heal();
  // Another process hears of it.
  const elsewhere = shared.slots(key, 50);
  const told = async () => {
    const heard = await elsewhere.ask('fresh', false);
    return heard.granted ? 0 : heard.waitMs;
  };
  await expect.poll(told, { timeout: 5000 }).toBeGreaterThan(1000);
  expect(ran).toBe(0);
  await patient;
  expect(ran).toBe(1);
  await lonely.close();
  await db.close();
  await line.close();
});
