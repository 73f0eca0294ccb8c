import { describe, expect, test } from 'vitest';
import { UNKNOWN_PROFILE } from '../../src/extract/profile.ts';
import { createReader, type Slice } from '../../src/extract/reader.ts';
import { createFlatten } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';
import type { Window } from '../../src/model/window.ts';
import { createSandboxSync, DAY, MINUTE, NOON, POLICY, type SandboxSync } from '../support/sandbox-sync.ts';

const ideal = (rows: number): number => Math.ceil(rows / 1000);

/** The second run finds nothing new; the third is an ordinary poll of a known stream. */
async function idlePoll(sync: SandboxSync): Promise<number> {
  await sync.run();
  sync.pass(5 * MINUTE);
  await sync.run();
  sync.pass(5 * MINUTE);
  return (await sync.run()).requests;
}

describe('requests of extraction', () => {
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

  test('an idle poll of a stream with a newest row from months ago: at most 2', async () => {
    const sync = createSandboxSync({ clicks: 500, days: 3 }, { start: NOON });
    sync.pass(80 * DAY);
    expect(await idlePoll(sync)).toBeLessThanOrEqual(2);
  });

  test('ten empty years: at most 20', async () => {
    const sync = createSandboxSync({ clicks: 0 }, { since: NOON - 3652 * DAY });
    expect((await sync.run()).requests).toBeLessThanOrEqual(20);
    // One empty answer proves nothing: the next poll confirms it.
    expect(sync.watermark()).toBeUndefined();
    sync.pass(5 * MINUTE);
    const { requests, hasDoubts } = await sync.run();
    expect([requests <= 20, hasDoubts, sync.watermark()]).toEqual([true, false, NOON - POLICY.settleMs]);
  });

  test('ten empty years before three days of rows: at most 20 more than for the rows', async () => {
    const sync = createSandboxSync({ clicks: 2500 }, { since: NOON - 3652 * DAY });
    expect((await sync.run()).requests).toBeLessThanOrEqual(20 + ideal(2500));
    expect(sync.missing()).toEqual([]);
  });

  test('a poll on a widening server does not reread the day: at most 2 with 20,000 rows today', async () => {
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

  test('memory holds pages, not windows', async () => {
    let held = 0;
    let most = 0;
    const count = (slice: Slice): boolean => {
      held += slice.rows.length;
      most = Math.max(most, held);
      return false;
    };
    const sync = createSandboxSync({ clicks: 20_000, traits: { ties: 5000 } }, { commitsNow: count });
    sync.sink.onCommit = (moment) => {
      // Everything added so far is in this commit or in the current one.
      if (moment === 'after') held = 0;
    };
    await sync.run();
    expect(sync.missing()).toEqual([]);
    // The committer's batch of 5,000 rows, the current one, and a page.
    expect(most).toBeLessThanOrEqual(5000 + 5000 + 1000);
  });
});

interface Poll {
  requests: number;
  /** Rows in all answers. */
  rows: number;
  /** A row from before the watermark was shown: the page overlaps what is complete. */
  isJoined: boolean;
  isComplete: boolean;
}

/** One poll, five minutes after the last, with rows arriving in between. */
async function poll(sync: SandboxSync, arriving = 0): Promise<Poll> {
  const watermark = sync.watermark() ?? Number.NaN;
  sync.pass(5 * MINUTE);
  sync.service.arrive('clicks', arriving, { from: sync.now() - 5 * MINUTE, to: sync.now() - 1 });
  const times: number[] = [];
  sync.api.onAnswer = (records) => {
    for (const { timestamp } of records as Array<{ timestamp: string }>) times.push(Date.parse(timestamp));
  };
  const { requests, hasDoubts } = await sync.run();
  return {
    requests,
    rows: times.length,
    isJoined: times.some((at) => at < watermark),
    isComplete: !hasDoubts && sync.missing().length === 0 && sync.watermark() === sync.now() - POLICY.settleMs,
  };
}

/** The fewest rows that a poll must carry: those of the lookback and newer ones. */
const rowsToCarry = (sync: SandboxSync, watermark: number): number =>
  sync.service
    .events('clicks')
    .filter(({ timestamp }) => Date.parse(String(timestamp)) >= watermark - POLICY.lookbackMs).length;

describe('what a poll carries', () => {
  test('an idle stream: at most 20 rows on one request, one of them from before the watermark', async () => {
    for (const traits of [{}, { widen: 'day' }] as const) {
      const sync = createSandboxSync({ clicks: 3000, traits });
      await sync.run();
      // Until the last rows are older than the lookback.
      for (let i = 0; i < 6; i++) await poll(sync);
      const { rows, ...result } = await poll(sync);
      expect(result, JSON.stringify(traits)).toEqual({ requests: 1, isJoined: true, isComplete: true });
      expect(rows, JSON.stringify(traits)).toBeLessThanOrEqual(20);
    }
  });

  test('100 new rows: at most 2.5 × (new + lookback) on one request, one of them from before the watermark', async () => {
    for (const traits of [{}, { widen: 'day' }] as const) {
      const sync = createSandboxSync({ clicks: 3000, traits });
      await sync.run();
      // Until they fill the lookback.
      for (let i = 0; i < 6; i++) await poll(sync, 100);
      const watermark = sync.watermark() ?? Number.NaN;
      const { rows, ...result } = await poll(sync, 100);
      expect(result, JSON.stringify(traits)).toEqual({ requests: 1, isJoined: true, isComplete: true });
      expect(rows, JSON.stringify(traits)).toBeLessThanOrEqual(2.5 * rowsToCarry(sync, watermark));
    }
  });

  test('100 rows after an idle hour: the same, with a second request if a start is widened', async () => {
    for (const [traits, requests] of [
      [{}, 1],
      [{ widen: 'day' } as const, 2],
    ] as const) {
      const sync = createSandboxSync({ clicks: 3000, traits });
      await sync.run();
      for (let i = 0; i < 12; i++) await poll(sync);
      const watermark = sync.watermark() ?? Number.NaN;
      const { rows, ...result } = await poll(sync, 100);
      expect(result, JSON.stringify(traits)).toEqual({ requests, isJoined: true, isComplete: true });
      expect(rows, JSON.stringify(traits)).toBeLessThanOrEqual(2.5 * rowsToCarry(sync, watermark));
    }
  });
});

test('a second poll within the same second rereads nothing, and commits once', async () => {
  const windows: Window[] = [];
  let commits = 0;
  const sync = createSandboxSync({ clicks: 2000 }, { onWindow: (window) => void windows.push(window) });
  await sync.run();
  const { open } = sync.sink;
  sync.sink.open = async (...of) => {
    commits += 1;
    return open(...of);
  };
  windows.length = 0;
  // The service's clock shows whole seconds, so it may be behind the first run's watermark.
  sync.pass(-1);
  expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false, requests: 1 });
  expect({ windows, commits }).toEqual({ windows: [], commits: 1 });
});

test('a window right after a tie larger than a page, where deep pages repeat the first: at most 60', async () => {
  const { service, api, now } = createSandboxSync({ clicks: 300, traits: { deepPages: 'repeat@1', ties: 2500 } });
  const times = service.truth('clicks').map(({ at }) => at);
  const tie = times.find((at, i) => times[i + 100] === at) ?? Number.NaN;
  const profile = { ...UNKNOWN_PROFILE, pageRows: 1000, isStartSeen: true, granularity: 'exact' as const };
  const flatten = createFlatten(STREAMS.clicks);
  const { settleMs } = POLICY;
  const reader = createReader({ api, stream: 'clicks', filters: {}, flatten, profile, mostRows: 1000, now, settleMs });
  const window = { start: tie + 10 * MINUTE, end: tie + 90 * MINUTE };
  for await (const _ of reader.sweep({ window, lane: 'backfill', signal: new AbortController().signal }));
  expect(api.queries.length).toBeLessThanOrEqual(60);
});

test('rows that arrive late during a first sync cause no contradiction: it is complete', async () => {
  const sync = createSandboxSync({ clicks: 20_000 });
  sync.api.onRequest = () => {
    sync.pass(500);
    const halfAnHourAgo = sync.now() - 30 * MINUTE;
    sync.service.arrive('clicks', 4, { from: sync.now() - 500, to: sync.now() - 1 });
    sync.service.arrive('clicks', 1, { from: halfAnHourAgo, to: halfAnHourAgo });
  };
  const { hasDoubts, requests } = await sync.run();
  expect(hasDoubts).toBe(false);
  expect(requests).toBeLessThanOrEqual(32);
});
