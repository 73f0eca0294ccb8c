import { expect, test } from 'vitest';
import type { EventsQuery } from '../../src/api/client.ts';
import { createSandboxSync, DAY, HOUR, MINUTE, NOON, POLICY, type SandboxSync } from '../support/sandbox-sync.ts';

/** Services whose answers are right in themselves, and do not come from everything there is. */

/** Asks the service something else than was asked. */
function askInstead(sync: SandboxSync, change: (asked: EventsQuery) => EventsQuery): void {
  const page = sync.api.page.bind(sync.api);
  sync.api.page = (asked, context) => page(change(asked), context);
}

const isComplete = (sync: SandboxSync): boolean => sync.watermark() === sync.now() - POLICY.settleMs;

test('a store of the last day answers whatever reaches into it: history does not begin there', async () => {
  const sync = createSandboxSync({ clicks: 3000, days: 6 });
  const edge = NOON - DAY;
  askInstead(sync, (asked) => (asked.end > edge ? { ...asked, start: Math.max(asked.start, edge) } : asked));
  expect(await sync.run()).toMatchObject({ hasDoubts: true });
  expect(sync.watermark()).toBeUndefined();
});

test('an archive answers whatever begins in it: nothing newer is certified away', async () => {
  const sync = createSandboxSync({ clicks: 3000, days: 6 });
  const edge = NOON - DAY;
  askInstead(sync, (asked) => (asked.start < edge ? { ...asked, end: Math.min(asked.end, edge) } : asked));
  await sync.run();
  expect(isComplete(sync) && sync.missing().length > 0).toBe(false);
});

test('nothing shows for two polls, and then everything does: all of it is read', async () => {
  const sync = createSandboxSync({ clicks: 4000 });
  let isDark = true;
  const page = sync.api.page.bind(sync.api);
  sync.api.page = async (asked, context) => {
    const answer = await page(asked, context);
    return isDark ? { ...answer, records: [] } : answer;
  };
  for (let poll = 0; poll < 2; poll++) {
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    sync.pass(MINUTE);
  }
  isDark = false;
  await sync.run();
  expect([sync.missing().length, isComplete(sync)]).toEqual([0, true]);
});

test('a stream that has shown rows and shows none is not called empty', async () => {
  const sync = createSandboxSync({ clicks: 500 });
  await sync.run();
  const page = sync.api.page.bind(sync.api);
  sync.api.page = async (asked, context) => ({ ...(await page(asked, context)), records: [] });
  sync.pass(30 * MINUTE);
  expect(await sync.run()).toMatchObject({ hasDoubts: true });
});

async function silentFor(hours: number): Promise<unknown> {
  const sync = createSandboxSync(
    { clicks: 3000, days: 6, historyEnd: NOON, traits: { retention: '403@2d' } },
    { start: NOON + hours * HOUR, since: NOON - 8 * DAY },
  );
  return (await sync.run()).error;
}

// Between 22 and 24 hours, the newest row is confirmed by a question that begins before what is retained.
test.each([1, 12, 20, 23, 30])(
  'a plan retains two days, and nothing came for %i hours: that is no refused key',
  async (hours) => {
    expect(await silentFor(hours)).toBeUndefined();
  },
);
