import { beforeEach, describe, expect, it } from 'vitest';
import { CAUTION, MARGIN } from '../../src/api/pace-rules.ts';
import { type Grant, LANES, type Lane, type Slots, type Turn } from '../../src/api/slots.ts';

/** Slots on a clock that the test moves. */
export interface SlotsHarness {
  /** Slots of a key that nobody has asked for yet. */
  open(requestsPerSecond: number): Promise<Slots>;
  pass(ms: number): Promise<void>;
  now(): number;
  /** What the clock moves by itself between two questions, at most. */
  toleranceMs: number;
}

/** What every source of slots keeps to: the pace of a process, and the budget that processes share. */
export function slotsSuite(name: string, createHarness: () => Promise<SlotsHarness>): void {
  describe(name, () => {
    let harness: SlotsHarness;
    let slots: Slots;
    beforeEach(async () => {
      harness = await createHarness();
      slots = await harness.open(4);
    });

    const GAP = (1000 / 4) * (1 + MARGIN);
    const waitOf = (turn: Turn): number => (turn.granted ? 0 : turn.waitMs);
    const about = (ms: number, expected: number): void => {
      expect(ms).toBeGreaterThan(expected - harness.toleranceMs - 1);
      expect(ms).toBeLessThan(expected + harness.toleranceMs + 1);
    };

    /** Comes back as often as it is told to, and returns the grant and how long it took. */
    async function go(lane: Lane = 'fresh'): Promise<{ grant: Grant; waited: number }> {
      const began = harness.now();
      for (;;) {
        const turn = await slots.ask(lane, false);
        if (turn.granted) return { grant: turn, waited: harness.now() - began };
        await harness.pass(turn.waitMs);
      }
    }

    /** How wide the gap is now, to the plan's own. Over several: one that is measured late is made up for by the next. */
    async function gaps(count: number): Promise<number> {
      await go();
      const began = harness.now();
      for (let i = 0; i < count; i++) await go();
      return (harness.now() - began) / count / GAP;
    }

    it.each([2, 4, 8])('at %d a second: even gaps, a little wider than the budget', async (perSecond) => {
      slots = await harness.open(perSecond);
      about((await go()).waited, 0);
      const began = harness.now();
      for (let i = 0; i < perSecond * 2; i++) await go();
      about(harness.now() - began, 2050);
    });

    it('puts a second between a request and the fourth after it, however late that one left', async () => {
      const { grant } = await go();
      await harness.pass(230);
      slots.departed(grant);
      const left = harness.now();
      for (let i = 0; i < 4; i++) await go();
      expect(harness.now() - left).toBeGreaterThan(1005);
      expect(harness.now() - left).toBeLessThan(1100);
    });

    it('takes back lateness of up to half a gap, and begins anew after more', async () => {
      await go();
      await harness.pass(GAP + 100);
      await go();
      about((await go()).waited, GAP - 100);
      await harness.pass(1000);
      await go();
      about((await go()).waited, GAP);
    });

    it('lets the more urgent lane go first, also when it came last', async () => {
      await go();
      const backfill = await slots.ask('backfill', false);
      const fresh = await slots.ask('fresh', false);
      await harness.pass(Math.max(waitOf(backfill), waitOf(fresh)) + 2);
      expect((await slots.ask('backfill', false)).granted).toBe(false);
      expect((await slots.ask('fresh', false)).granted).toBe(true);
    });

    it('does not wait for a lane that does not come', async () => {
      await go();
      const told = waitOf(await slots.ask('fresh', false));
      await harness.pass(told + 2);
      const turn = await slots.ask('backfill', false);
      about(waitOf(turn), GAP / 4 - 2);
      await harness.pass(waitOf(turn) + 1);
      expect((await slots.ask('backfill', false)).granted).toBe(true);
    });

    it('gives a lane that waits its turn after three of the more urgent ones', async () => {
      const due = new Map<Lane, number>([...LANES].reverse().map((lane) => [lane, 0]));
      const order: Lane[] = [];
      while (order.length < 30) {
        const [lane, at] = [...due].reduce((first, one) => (one[1] < first[1] ? one : first));
        await harness.pass(Math.max(at - harness.now(), 0));
        const turn = await slots.ask(lane, false);
        if (turn.granted) order.push(lane);
        due.set(lane, harness.now() + waitOf(turn));
      }
      // The first ones come before all three are known to wait; from then on it is 3 : 1 : 1.
      const count = (lane: Lane): number => order.slice(5).filter((one) => one === lane).length;
      expect(count('backfill')).toBeGreaterThanOrEqual(4);
      expect(count('repair')).toBeGreaterThanOrEqual(4);
      expect(count('fresh')).toBeGreaterThanOrEqual(14);
    });

    it('is paused once by all the 429s of requests that were under way', async () => {
      const all = [await go(), await go(), await go()].map(({ grant }) => grant);
      await slots.tooMany(3000, all[0]);
      await harness.pass(100);
      await slots.tooMany(3000, all[1]);
      expect(slots.pauses()).toBe(1);
      const probe = await go();
      expect(probe.waited).toBeGreaterThan(2900);
      expect(probe.grant.alone).toBe(true);
      slots.settled(probe.grant);
      // The third comes home when the probe has gone and succeeded.
      await slots.tooMany(3000, all[2]);
      expect(slots.pauses()).toBe(1);
      expect((await go()).waited).toBeLessThan(500);
    });

    it('lets nobody go before the probe is answered, and does not wait for ever', async () => {
      await go();
      await slots.tooMany(1000);
      const { grant } = await go();
      await harness.pass(2000);
      expect((await slots.ask('fresh', false)).granted).toBe(false);
      slots.settled(grant);
      about((await go()).waited, 0);
      await slots.tooMany(1000);
      await go();
      expect((await go()).waited).toBeGreaterThan(4900);
    });

    it('lets a request on a cold connection arrive before the next one', async () => {
      const first = await slots.ask('fresh', true);
      expect(first).toMatchObject({ granted: true, alone: true });
      expect((await go()).waited).toBeGreaterThan(480);
    });

    it('widens the gap after a pause and restores it in half a minute', async () => {
      await go();
      await slots.tooMany(1000);
      slots.settled((await go()).grant);
      const widened = (await go()).waited;
      expect(widened).toBeGreaterThan(GAP * 1.5 - 20 - harness.toleranceMs);
      await harness.pass(14_000);
      const half = await gaps(4);
      const tolerance = harness.toleranceMs / GAP;
      expect(half).toBeGreaterThan(1.15 - tolerance);
      expect(half).toBeLessThan(1.35 + tolerance);
      await harness.pass(15_000);
      expect(await gaps(4)).toBeLessThan(1.08 + tolerance);
    });

    it('keeps a little more distance for ten minutes after a pause: the way may vary by more than the margin', async () => {
      await go();
      await slots.tooMany(1000);
      slots.settled((await go()).grant);
      await harness.pass(60_000);
      expect(await gaps(40)).toBeGreaterThan(1 + CAUTION / 2);
      await harness.pass(600_000);
      let plain = await gaps(20);
      // A machine that is held up makes gaps wider, never narrower: then the next twenty tell.
      for (let i = 0; i < 5 && plain > 1 + CAUTION / 2; i++) plain = await gaps(20);
      expect(plain).toBeLessThan(1 + CAUTION / 2);
    });

    it('without a time from the service, pauses longer with each probe that fails, within bounds', async () => {
      const waits: number[] = [];
      let probe = (await go()).grant;
      for (let i = 0; i < 6; i++) {
        await slots.tooMany(undefined, probe);
        const { grant, waited } = await go();
        waits.push(Math.round(waited / 500) / 2);
        probe = grant;
      }
      expect(waits).toEqual([2, 4, 8, 16, 16, 16]);
      slots.settled(probe);
      await slots.tooMany(undefined, (await go()).grant);
      expect(Math.round((await go()).waited / 500) / 2).toBe(2);
    });
  });
}
