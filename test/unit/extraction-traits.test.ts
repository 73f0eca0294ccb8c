import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/sandbox/data/types.ts';
import { createSandboxSync, DAY, HOUR, MINUTE, NOON, POLICY, type SandboxSync } from '../support/sandbox-sync.ts';
import { serviceError } from '../support/service-error.ts';

/** Every visible event is in the sink and certified up to the settle time. */
function expectComplete(sync: SandboxSync): void {
  expect(sync.missing()).toEqual([]);
  expect(sync.watermark()).toBe(sync.now() - POLICY.settleMs);
}

describe('oddities of pages, at 1,000 rows each', () => {
  test('a tie group of 5,000 on one instant', async () => {
    const sync = createSandboxSync({ clicks: 3000, traits: { ties: 5000 } });
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    expectComplete(sync);
    expect(sync.sink.rows.size).toBe(8000);
  });

  test('a tie group of 2,500 on one instant, in another order at every request', async () => {
    const sync = createSandboxSync({ clicks: 3000, traits: { ties: 2500, shuffleTies: true } });
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    expectComplete(sync);
  });

  test('a day of 20,000 on a server that widens bounds to days', async () => {
    const sync = createSandboxSync({ clicks: 20_000, days: 1, traits: { widen: 'day' } });
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    expectComplete(sync);
  });

  test('an empty page in the middle: all other rows arrive, and the gap is not certified', async () => {
    const sync = createSandboxSync({ clicks: 6000 });
    hideRun(sync, 2000, 4200);
    // No answer shows the rows on both sides of 2,200 hidden ones.
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: true });
    expect(sync.watermark()).toBeLessThan(sync.now() - POLICY.settleMs);
    expect(sync.missing()).toHaveLength(2200);
  });

  test('a server that repeats its last page for ever', async () => {
    const sync = createSandboxSync({ clicks: 5500, days: 1, traits: { lastPage: 'repeat', widen: 'day' } });
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    expectComplete(sync);
  });

  test('a page after which every page fails with 500, on a server with exact bounds', async () => {
    const sync = createSandboxSync({ clicks: 6000, traits: { deepPages: 'fail@2' } });
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    expectComplete(sync);
  });

  test('a page after which every page fails with 500, on a server that widens to days', async () => {
    // Up to 9,000 rows a day: six pages from either end of a day meet, but none shows both sides of a midnight.
    const sync = createSandboxSync({ clicks: 18_000, days: 3, traits: { widen: 'day', deepPages: 'fail@6' } });
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: true });
    expect(sync.missing()).toEqual([]);
  });

  test('a row that breaks every page with it is the only one missing', async () => {
    const sync = createSandboxSync({ clicks: 5000, traits: { poison: 2 } });
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    expect(sync.missing().sort()).toEqual(sync.service.poisoned('clicks').sort());
    expect(sync.watermark()).toBe(sync.now() - POLICY.settleMs);
    expect(sync.sink.rejected).toHaveLength(2);
    expect(sync.sink.ledger().map(({ note }) => note)).toContain('a row that the service cannot show was set aside');
  });

  test('a row that breaks its page on a server that widens to days is the only one missing', async () => {
    const sync = createSandboxSync({ clicks: 5000, days: 1, traits: { poison: 2, widen: 'day' } });
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    expect(sync.missing().sort()).toEqual(sync.service.poisoned('clicks').sort());
  });

  test('responses over a megabyte are refused: smaller pages follow', async () => {
    const sync = createSandboxSync({ clicks: 4000, traits: { maxBytes: 1_000_000 } });
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    expectComplete(sync);
  });

  test('ties shuffled, a tenth of the rows hidden, bounds exclusive', async () => {
    const traits = { shuffleTies: true, dropAfterLimit: 0.1, bounds: 'exclusive' } as const;
    const sync = createSandboxSync({ clicks: 8000, traits });
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    expectComplete(sync);
  });
});

describe('new and late events', () => {
  test('a new event is delivered by the next poll, before the settle time', async () => {
    const sync = createSandboxSync({ clicks: 2000 });
    await sync.run();
    sync.pass(MINUTE);
    const [id = ''] = sync.service.arrive('clicks', 1);
    await sync.run();
    expect(sync.sink.rows.has(id)).toBe(true);
    expect(sync.watermark()).toBe(sync.now() - POLICY.settleMs);
  });

  test('an event backdated by minutes, behind the watermark, is read by the lookback', async () => {
    const sync = createSandboxSync({ clicks: 15_000, days: 0.25 });
    await sync.run();
    sync.pass(5 * MINUTE);
    const at = sync.now() - POLICY.settleMs - 10 * MINUTE;
    const [id = ''] = sync.service.arrive('clicks', 1, { from: at, to: at });
    await sync.run();
    expect(sync.sink.rows.has(id)).toBe(true);
  });

  test('an event backdated by months is read by the nightly re-sweep, and the ledger has the date', async () => {
    const sync = createSandboxSync({ clicks: 3000, days: 80 }, { policy: { ...POLICY, resweepMs: 90 * DAY } });
    await sync.run();
    const at = sync.now() - 60 * DAY;
    const [id = ''] = sync.service.arrive('clicks', 1, { from: at, to: at });
    sync.pass(HOUR);
    await sync.run();
    expect(sync.sink.rows.has(id)).toBe(false);
    sync.pass(15 * HOUR);
    const nightly = sync.now();
    await sync.run();
    expect(sync.sink.rows.has(id)).toBe(true);
    const entry = sync.sink.ledger().find(({ start, end }) => at >= start && at < end);
    expect(entry?.provenAt).toBe(nightly);
  });

  test('a day is reread on the next day and after two days, without a configured re-sweep', async () => {
    const sync = createSandboxSync({ clicks: 2000, days: 1 });
    await sync.run();
    const at = sync.now() - 3 * HOUR;
    for (const wait of [14 * HOUR, 2 * DAY]) {
      const [id = ''] = sync.service.arrive('clicks', 1, { from: at, to: at });
      sync.pass(wait);
      await sync.run();
      expect(sync.sink.rows.has(id)).toBe(true);
    }
  });

  test('a stream that fits one page is reread completely too, which reveals deleted events', async () => {
    const sync = createSandboxSync({ clicks: 300, days: 1 });
    await sync.run();
    const fullWindows: Array<{ start: number; end: number }> = [];
    sync.sink.onCommit = (_moment, { spans }) => void fullWindows.push(...spans.filter((span) => span.whole));
    sync.pass(14 * HOUR);
    sync.service.arrive('clicks', 5);
    await sync.run();
    const yesterday = { start: NOON - 12 * HOUR, end: NOON - 11 * HOUR };
    expect(fullWindows.some(({ start, end }) => start <= yesterday.start && end >= yesterday.end)).toBe(true);
  });
});

describe('refusals in the middle of a window', () => {
  test.each([401, 403, 422])('%i stops the stream, and keeps its cursor and proofs', async (status) => {
    const sync = createSandboxSync({ clicks: 8000 });
    sync.api.onRequest = (_query, count) => {
      if (count > 5) throw serviceError(status);
    };
    const { error } = await sync.run();
    expect(error).toMatchObject({ answer: { status } });
    const kept = sync.watermark();
    expect(kept).toBeGreaterThan(NOON - 3 * DAY);
    sync.api.onRequest = () => {};
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    expectComplete(sync);
    expect(sync.api.queries.length).toBeLessThan(5 + 8 + 12);
  });

  test.each([429, 500, 503])('the same window is read again after %i', async (status) => {
    const sync = createSandboxSync({ clicks: 6000 });
    sync.api.onRequest = (_query, count) => {
      if (count === 4) throw serviceError(status);
    };
    const first = await sync.run();
    // A 429 after all retries ends the run; any other error may concern one page and is investigated.
    if (status === 429) expect(first.error).toMatchObject({ answer: { status } });
    else expect(first).toMatchObject({ error: undefined, hasDoubts: false });
    await sync.run();
    expectComplete(sync);
  });
});

/** Rows counted by limit and offset but never shown, adjacent in time. */
function hideRun({ service, api }: SandboxSync, from: number, to: number): void {
  const hidden = new Set(service.ids('clicks').slice(from, to));
  const { page } = api;
  const idOf = (record: unknown): string => ((record as JsonObject).click as { id: string }).id;
  api.page = async (query, options) => {
    const answer = await page(query, options);
    return { ...answer, records: answer.records.filter((record) => !hidden.has(idOf(record))) };
  };
}
