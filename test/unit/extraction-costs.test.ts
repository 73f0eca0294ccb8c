import { describe, expect, test } from 'vitest';
import type { Slice } from '../../src/extract/reader.ts';
import { createSandboxSync, DAY, MINUTE, NOON, POLICY, type SandboxSync } from '../support/sandbox-sync.ts';

const ideal = (rows: number): number => Math.ceil(rows / 1000);

/** The second run finds nothing new; the third is an ordinary poll of a stream that is known. */
async function idlePoll(sync: SandboxSync): Promise<number> {
  await sync.run();
  sync.pass(5 * MINUTE);
  await sync.run();
  sync.pass(5 * MINUTE);
  return (await sync.run()).requests;
}

describe('what extraction costs in requests', () => {
  test('40,000 rows over 3 days on a calm exact server: at most 1.05 × ideal + 10', async () => {
    const sync = createSandboxSync({ clicks: 40_000 });
    const { requests, hasDoubts } = await sync.run();
    expect(hasDoubts).toBe(false);
    expect(sync.missing()).toEqual([]);
    expect(requests).toBeLessThanOrEqual(1.05 * ideal(40_000) + 10);
  });

  test('an idle poll: at most 2', async () => {
    expect(await idlePoll(createSandboxSync({ clicks: 3000 }))).toBeLessThanOrEqual(2);
  });

  test('an idle poll of a stream that never had a row: at most 3', async () => {
    expect(await idlePoll(createSandboxSync({ clicks: 0 }))).toBeLessThanOrEqual(3);
  });

  test('an idle poll of a stream whose newest row is months old: at most 2', async () => {
    const sync = createSandboxSync({ clicks: 500, days: 3 }, { start: NOON });
    sync.pass(80 * DAY);
    expect(await idlePoll(sync)).toBeLessThanOrEqual(2);
  });

  test('ten empty years: at most 20', async () => {
    const sync = createSandboxSync({ clicks: 0 }, { since: NOON - 3652 * DAY });
    expect((await sync.run()).requests).toBeLessThanOrEqual(20);
    // An empty answer proves nothing by itself: the next poll confirms it.
    expect(sync.watermark()).toBeUndefined();
    sync.pass(5 * MINUTE);
    const { requests, hasDoubts } = await sync.run();
    expect([requests <= 20, hasDoubts, sync.watermark()]).toEqual([true, false, NOON - POLICY.settleMs]);
  });

  test('ten empty years before three days of rows: at most 20 more than the rows need', async () => {
    const sync = createSandboxSync({ clicks: 2500 }, { since: NOON - 3652 * DAY });
    expect((await sync.run()).requests).toBeLessThanOrEqual(20 + ideal(2500));
    expect(sync.missing()).toEqual([]);
  });

  test('a poll on a widening server does not read the day again: at most 2 with 20,000 rows today', async () => {
    const sync = createSandboxSync({ clicks: 20_000, days: 0.5, traits: { widen: 'day' } });
    await sync.run();
    sync.pass(5 * MINUTE);
    const arrived = sync.service.arrive('clicks', 60, { from: sync.now() - 5 * MINUTE, to: sync.now() - 1 });
    const { requests, hasDoubts } = await sync.run();
    expect(requests).toBeLessThanOrEqual(2);
    expect(hasDoubts).toBe(false);
    expect(arrived.filter((id) => !sync.sink.rows.has(id))).toEqual([]);
    expect(sync.watermark()).toBe(sync.now() - POLICY.settleMs);
  });

  test('rows held at once are pages, not windows', async () => {
    let held = 0;
    let most = 0;
    const count = (slice: Slice): boolean => {
      held += slice.rows.length;
      most = Math.max(most, held);
      return false;
    };
    const sync = createSandboxSync({ clicks: 20_000, traits: { ties: 5000 } }, { commitsNow: count });
    sync.sink.onCommit = (moment) => {
      // Everything added so far is in this commit or in the one under way.
      if (moment === 'after') held = 0;
    };
    await sync.run();
    expect(sync.missing()).toEqual([]);
    // The committer's batch of 5,000 rows, the one under way, and a page.
    expect(most).toBeLessThanOrEqual(5000 + 5000 + 1000);
  });
});
