import { expect, test } from 'vitest';
import type { EventsQuery } from '../../src/api/client.ts';
import { createSandboxSync, DAY, HOUR, MINUTE, NOON, POLICY, type SandboxSync } from '../support/sandbox-sync.ts';

/** Services whose answers are consistent but come from part of the data. */

/** Replaces the query that the service receives. */
function askInstead(sync: SandboxSync, change: (asked: EventsQuery) => EventsQuery): void {
  const page = sync.api.page.bind(sync.api);
  sync.api.page = (asked, context) => page(change(asked), context);
}

const isComplete = (sync: SandboxSync): boolean => sync.watermark() === sync.now() - POLICY.settleMs;

test('a store of the last day answers every query that reaches into it: history is not taken to begin there', async () => {
  const sync = createSandboxSync({ clicks: 3000, days: 6 });
  const edge = NOON - DAY;
  askInstead(sync, (asked) => (asked.end > edge ? { ...asked, start: Math.max(asked.start, edge) } : asked));
  expect(await sync.run()).toMatchObject({ hasDoubts: true });
  expect(sync.watermark()).toBeUndefined();
});

test('an archive answers every query that begins in it: nothing newer is wrongly certified', async () => {
  const sync = createSandboxSync({ clicks: 3000, days: 6 });
  const edge = NOON - DAY;
  askInstead(sync, (asked) => (asked.start < edge ? { ...asked, end: Math.min(asked.end, edge) } : asked));
  await sync.run();
  expect(isComplete(sync) && sync.missing().length > 0).toBe(false);
});

test('rows that appear after two empty polls are all read', async () => {
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

test('a stream that showed rows and then shows none is not certified empty', async () => {
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

// Between 22 and 24 hours, a query that begins before the retained range confirms the newest row.
test.each([1, 12, 20, 23, 30])(
  'a plan that retains two days, without events for %i hours, is not reported as a refused key',
  async (hours) => {
    expect(await silentFor(hours)).toBeUndefined();
  },
);
