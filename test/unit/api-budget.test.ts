import { beforeEach, expect, it } from 'vitest';
import {
  type Budget,
  CAUTION,
  createBudget,
  createOwnStore,
  gapOf,
  type Slot,
  takeSlot,
  unused,
} from '../../src/api/budget.ts';
import { createRandom } from '../../src/sandbox/data/random.ts';

/** A budget on a simulated clock. */
let now = 0;
let budget: Budget;
const open = (perSecond: number): Budget =>
  createBudget(
    perSecond,
    createOwnStore(perSecond, () => now),
  );
const pass = (ms: number): void => {
  now += ms;
};
beforeEach(() => {
  now = 1_000_000;
  budget = open(4);
});

const TOLERANCE_MS = 5;
const GAP = gapOf(4);
/** The plan's interval. */
const PLAN_MS = 1000 / 4;
const about = (ms: number, expected: number): void => {
  expect(ms).toBeGreaterThan(expected - TOLERANCE_MS - 1);
  expect(ms).toBeLessThan(expected + TOLERANCE_MS + 1);
};

/** Retries at the times it returns until it grants a slot; returns the slot and the wait. */
async function go(): Promise<{ slot: Slot; waited: number }> {
  const began = now;
  for (;;) {
    const turn = await budget.take('fresh', false);
    pass('at' in turn ? Math.max(turn.at - budget.now(), 0) : turn.waitMs);
    if ('at' in turn) return { slot: turn, waited: now - began };
  }
}

/** The gap relative to the plan's interval, averaged over several: a late one shortens the next. */
async function gaps(count: number): Promise<number> {
  await go();
  const began = now;
  for (let i = 0; i < count; i++) await go();
  return (now - began) / count / GAP;
}

it.each([2, 4, 8])('spaces requests evenly at %d a second, slightly wider than the budget', async (perSecond) => {
  budget = open(perSecond);
  about((await go()).waited, 0);
  const began = now;
  for (let i = 0; i < perSecond * 2; i++) await go();
  about(now - began, gapOf(perSecond) * perSecond * 2);
});

it('spaces a request and the fourth after it by a second, however late the first left', async () => {
  const { slot } = await go();
  pass(230);
  budget.left(slot);
  const left = now;
  for (let i = 0; i < 4; i++) await go();
  expect(now - left).toBeGreaterThan(1005);
  expect(now - left).toBeLessThan(1100);
});

it('gives any number of requests their share of the plan, however late single ones are: some services weight the last second', async () => {
  const random = createRandom(7);
  const sent: number[] = [];
  for (let i = 0; i < 400; i++) {
    const { slot } = await go();
    pass(random.int(0, 9) === 0 ? random.int(1, 400) : 0);
    budget.left(slot);
    sent.push(now);
  }
  for (let apart = 1; apart < 16; apart++) {
    const closest = Math.min(...sent.slice(apart).map((at, i) => at - (sent[i] ?? 0)));
    expect(closest).toBeGreaterThanOrEqual(apart * PLAN_MS - TOLERANCE_MS);
  }
});

it('hands out slots one at a time, however many are requested in advance', async () => {
  const slots = [
    await budget.take('fresh', false),
    await budget.take('fresh', false),
    await budget.take('fresh', false),
  ].filter((one) => 'at' in one);
  about((slots[1]?.at ?? 0) - (slots[0]?.at ?? 0), PLAN_MS);
  about((slots[2]?.at ?? 0) - (slots[1]?.at ?? 0), GAP);
});

it('pauses once for the 429s of all concurrent requests', async () => {
  const all = [await go(), await go(), await go()].map(({ slot }) => slot);
  await budget.tooMany(3000, all[0]);
  pass(100);
  await budget.tooMany(3000, all[1]);
  expect(budget.pauses()).toBe(1);
  const probe = await go();
  expect(probe.waited).toBeGreaterThan(2900);
  expect(probe.slot.isAlone).toBe(true);
  budget.answered(probe.slot);
  // The third arrives after the probe was sent and succeeded.
  await budget.tooMany(3000, all[2]);
  expect(budget.pauses()).toBe(1);
  expect((await go()).waited).toBeLessThan(500);
});

it('sends nothing before the probe is answered, but does not wait for ever', async () => {
  await go();
  await budget.tooMany(1000);
  const { slot } = await go();
  pass(2000);
  expect('at' in (await budget.take('fresh', false))).toBe(false);
  budget.answered(slot);
  about((await go()).waited, 0);
  await budget.tooMany(1000);
  await go();
  expect((await go()).waited).toBeGreaterThan(4900);
});

it('lets a request on a cold connection arrive before sending the next one', async () => {
  expect(await budget.take('fresh', true)).toMatchObject({ isAlone: true });
  expect((await go()).waited).toBeGreaterThan(480);
});

it('reports the answer on a cold connection with its next turn, and never ends the turn of another process', async () => {
  const store = createOwnStore(4, () => now);
  let steps = 0;
  const counting: typeof store = {
    ...store,
    change(...step) {
      steps += 1;
      return store.change(...step);
    },
  };
  const [one, other] = [createBudget(4, counting), createBudget(4, counting)];
  const cold = (await one.take('fresh', true)) as Slot;
  pass(GAP);
  one.answered(cold);
  expect(steps).toBe(1);
  expect(await one.take('fresh', false)).toMatchObject({ number: 2 });

  pass(10_000);
  one.answered((await one.take('fresh', true)) as Slot);
  pass(10_000);
  expect(await other.take('fresh', true)).toMatchObject({ number: 4, isAlone: true });
  pass(GAP);
  expect('waitMs' in (await one.take('fresh', false))).toBe(true);
});

it('resumes the pace right after one 429: it costs its pause and the probe', async () => {
  await go();
  await budget.tooMany(1000);
  budget.answered((await go()).slot);
  await go();
  expect(await gaps(40)).toBeLessThan(1 + CAUTION / 2);
});

it('is not resumed by the late answer of a probe from before the pause', async () => {
  const cold = await budget.take('fresh', true);
  if (!('at' in cold)) throw new Error('the first is granted');
  await budget.tooMany(1000);
  await go();
  budget.answered(cold);
  expect('at' in (await budget.take('fresh', false))).toBe(false);
});

it('lets no request leave close behind a late one', async () => {
  const { slot } = await go();
  pass(GAP * 0.9);
  budget.left(slot);
  expect((await go()).waited).toBeGreaterThanOrEqual(PLAN_MS);
});

it('widens the gaps with each 429 that follows closely, and recovers ten seconds after the last', async () => {
  for (let i = 0; i < 3; i++) {
    await go();
    await budget.tooMany(1000);
    budget.answered((await go()).slot);
  }
  expect(await gaps(4)).toBeGreaterThan(2);
  pass(10_000);
  expect(await gaps(4)).toBeLessThan(1.08 + TOLERANCE_MS / GAP);
});

it('recovers ten seconds after the last 429 for any number of processes: none keeps a wide slot for later', async () => {
  for (let i = 0; i < 5; i++) await budget.tooMany(1000, (await go()).slot);
  budget.answered((await go()).slot);
  const isOver = now + 10_000;
  const asksAt = Array.from({ length: 8 }, () => now);
  const slots: number[] = [];
  while (now < isOver + 10_000) {
    now = Math.min(...asksAt);
    const turn = await budget.take('fresh', false);
    if ('at' in turn) slots.push(turn.at);
    asksAt[asksAt.indexOf(now)] = 'at' in turn ? turn.at + 1 : now + turn.waitMs;
  }
  const wide = slots.filter((at) => at < isOver).length / (10_000 / GAP);
  expect(wide).toBeLessThan(0.3);
  const second = 1000;
  const back = slots.filter((at) => at >= isOver + 2 * second && at < isOver + 10 * second).length;
  expect(back / (8 * second)).toBeGreaterThan(0.93 * (4 / second));
});

it('keeps wider gaps for half an hour after a second 429: latency may vary by more than the margin', async () => {
  for (let i = 0; i < 2; i++) {
    await go();
    await budget.tooMany(1000);
    budget.answered((await go()).slot);
    pass(60_000);
  }
  expect(await gaps(40)).toBeGreaterThan(1 + CAUTION / 2);
  pass(1_800_000);
  let plain = await gaps(20);
  // A delay of the machine only widens gaps, so the next twenty decide.
  for (let i = 0; i < 5 && plain > 1 + CAUTION / 2; i++) plain = await gaps(20);
  expect(plain).toBeLessThan(1 + CAUTION / 2);
});

it('widens the gaps with each further 429, up to 10%, but not for a refused probe', async () => {
  const refuse = async (): Promise<void> => {
    await go();
    await budget.tooMany(1000, (await go()).slot);
    budget.answered((await go()).slot);
    pass(30_000);
  };
  const caution = async (): Promise<number> => {
    await go();
    return (await gaps(40)) - 1;
  };
  await refuse();
  await budget.tooMany(1000, (await go()).slot);
  await budget.tooMany(1000, (await go()).slot);
  budget.answered((await go()).slot);
  pass(30_000);
  const second = await caution();
  expect(second / CAUTION).toBeCloseTo(1, 0);
  await refuse();
  await refuse();
  expect((await caution()) / CAUTION).toBeCloseTo(3, 0);
  for (let i = 0; i < 5; i++) await refuse();
  expect((await caution()) / CAUTION).toBeCloseTo(4, 0);
});

it('pauses longer with each 429 of a streak, within bounds, if the service names no time', async () => {
  const waits: number[] = [];
  let probe = (await go()).slot;
  for (let i = 0; i < 6; i++) {
    await budget.tooMany(undefined, probe);
    const { slot, waited } = await go();
    waits.push(Math.round(waited / 500) / 2);
    probe = slot;
  }
  expect(waits).toEqual([2, 4, 8, 16, 16, 16]);
  budget.answered(probe);
  pass(11_000);
  await budget.tooMany(undefined, (await go()).slot);
  expect(Math.round((await go()).waited / 500) / 2).toBe(2);
});

it('continues when its clock is set back', () => {
  const HOUR = 3_600_000;
  const [state] = takeSlot(unused(4), 4, false, 2 * HOUR);
  expect(takeSlot(state, 4, false, HOUR)[1]).toMatchObject({ at: HOUR });
});

it('keeps the lowest pace of the processes that share a key, while that process sends requests', () => {
  const [first] = takeSlot(unused(8), 8, false, 1000);
  const [second] = takeSlot(first, 2, false, 1000);
  expect(second.nextAt - 1000).toBeGreaterThan(500);
  const [third, slot] = takeSlot(second, 8, false, 1000);
  expect('at' in slot && slot.at).toBeGreaterThanOrEqual(second.nextAt);
  expect(third.perSecond).toBe(2);
  expect(takeSlot(third, 8, false, 12_000)[0].perSecond).toBe(8);
});
