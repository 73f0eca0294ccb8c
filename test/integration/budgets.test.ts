import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Budget, gapOf, type Slot } from '../../src/api/budget.ts';
import { createLimiter } from '../../src/api/limiter.ts';
import {
  keyHashOf,
  openSharedBudgets,
  readBudgets,
  readBudgetUse,
  type SharedBudgets,
} from '../../src/cursor/budgets.ts';
import { connect } from '../../src/cursor/database/index.ts';
import { RetryLater } from '../../src/model/errors.ts';
import { type Engine, openEngine } from '../support/engine.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';

/** One row per key, in a real database. */

let engine: Engine;
let shared: SharedBudgets;
beforeAll(async () => {
  engine = await openEngine();
  shared = openSharedBudgets(engine.db);
});
afterAll(async () => {
  await shared.close();
  await engine.close();
});

async function take(budget: Budget): Promise<Slot> {
  const turn = await budget.take('fresh', false);
  if ('at' in turn) return turn;
  throw new Error(`a slot only in ${turn.waitMs} ms`);
}

const usedBy = async (key: string, span: { minutes: number; step: number }) =>
  (await readBudgetUse(engine.db, span)).filter(({ keyHash }) => keyHash === key);

it('shares pace, pause and probe among all processes with one key', async () => {
  const key = randomUUID();
  const [one, other] = [shared.of(key, 2), shared.of(key, 2)];
  const slots = [await take(one), await take(other), await take(one)];
  expect(slots.map(({ number }) => number)).toEqual([1, 2, 3]);
  expect((slots[2]?.at ?? 0) - (slots[0]?.at ?? 0)).toBeGreaterThan(1000);
  // A slot is in the database's time, and each process can convert it.
  expect(Math.abs(one.now() - Date.now())).toBeLessThan(10_000);

  await one.tooMany(60_000, slots[0]);
  await other.tooMany(60_000, slots[1]);
  expect(await other.take('fresh', false)).toMatchObject({ waitMs: expect.closeTo(60_000, -4) });
  expect([one.pauses(), other.pauses()]).toEqual([1, 1]);
  await engine.db.query({
    text: `update tributary.budgets set state = state || '{"pausedUntil":0,"nextAt":0,"leftAt":[]}'`,
  });
  const probe = await take(other);
  expect(probe.isAlone).toBe(true);
  expect(await one.take('fresh', false)).toHaveProperty('waitMs');
  other.answered(probe);
  await expect.poll(() => one.take('fresh', false)).toMatchObject({ isAlone: false, pauseCount: 1 });
});

it('hands out each slot once to concurrent callers', async () => {
  const key = randomUUID();
  const lines = [0, 1, 2, 3].map(() => connect({ url: engine.url, max: 1 }));
  const all = lines.map((db) => openSharedBudgets(db));
  const slots: Slot[] = [];
  await Promise.all(
    all.map(async (one) => {
      const budget = one.of(key, 20);
      for (let i = 0; i < 10; i++) slots.push(await take(budget));
    }),
  );
  expect(new Set(slots.map(({ number }) => number)).size).toBe(40);
  const times = slots.map(({ at }) => at).sort((a, b) => a - b);
  const gaps = times.slice(1).map((at, i) => at - (times[i] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThan(gapOf(20) / 2);
  const [use] = await usedBy(keyHashOf(key), { minutes: 2, step: 2 });
  expect(use?.requests).toBe(40);
  await Promise.all(all.map((one) => one.close()));
  await Promise.all(lines.map((db) => db.close()));
});

it('keeps statistics of seven days, by key and minute', async () => {
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
  const minutes = await usedBy(keyHash, { minutes: 60, step: 1 });
  expect(minutes.map(({ requests, share }) => ({ requests, share }))).toEqual([
    { requests: 240, share: 1 },
    { requests: 120, share: 0.5 },
  ]);
  const week = { minutes: 14 * 24 * 60, step: 14 * 24 * 60 };
  expect(await usedBy(keyHash, week)).toMatchObject([{ requests: 370, tooManyRequests: 3 }]);
  await take(shared.of(key, 4));
  expect(await usedBy(keyHash, week)).toMatchObject([{ requests: 361, tooManyRequests: 2 }]);

  await shared.of(key, 4).tooMany(9000);
  const mine = (await readBudgets(engine.db)).find((one) => one.keyHash === keyHash);
  expect(mine).toMatchObject({ perSecond: 4, pausedSeconds: expect.closeTo(9, 0) });
  expect(await usedBy(keyHash, week)).toMatchObject([{ tooManyRequests: 3, pauses: 1 }]);
});

it('waits for an unreachable database, and sends nothing until the database has recorded the 429', async () => {
  const line = await startFaultProxy(engine.url);
  const db = connect({ url: line.url, max: 2 });
  const lonely = openSharedBudgets(db);
  const key = randomUUID();
  const budget = lonely.of(key, 50);
  const turn = await take(budget);
  const limiter = createLimiter({ requestsPerSecond: 50, budget });
  let ran = 0;
  const one = () => limiter.run('fresh', async () => void ran++);

  await line.fail({ kind: 'refuse' });
  await budget.tooMany(3000, turn);
  const fault: RetryLater = await one().catch((error) => error);
  expect(fault).toBeInstanceOf(RetryLater);
  expect(fault.describe()).toMatch(/budget, which all processes share, cannot be reached[\s\S]*no request was sent/);

  const patient = one();
  await sleep(500);
  await line.heal();
  // Another process sees the pause.
  const elsewhere = shared.of(key, 50);
  const waitMs = async () => {
    const slot = await elsewhere.take('fresh', false);
    return 'at' in slot ? 0 : slot.waitMs;
  };
  await expect.poll(waitMs, { timeout: 5000 }).toBeGreaterThan(1000);
  expect(ran).toBe(0);
  await patient;
  expect(ran).toBe(1);
  await lonely.close();
  await db.close();
  await line.close();
});
