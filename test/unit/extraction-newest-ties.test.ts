import { describe, expect, test } from 'vitest';
import { UNKNOWN_PROFILE } from '../../src/extract/profile.ts';
import { createReader } from '../../src/extract/reader.ts';
import { createFlatten } from '../../src/model/flatten.ts';
import { STREAMS } from '../../src/model/streams.ts';
import type { Traits } from '../support/odd-service/traits.ts';
import { createSandboxSync, DAY, HOUR, MINUTE, POLICY, type SandboxSync } from '../support/sandbox-sync.ts';

/** The newest instant has more rows than a page: a bulk import, then silence. */
function importInBulk(sync: SandboxSync, rows: number): void {
  const at = sync.now();
  sync.service.arrive('clicks', rows, { from: at, to: at });
}

const isComplete = (sync: SandboxSync): boolean => sync.watermark() === sync.now() - POLICY.settleMs;

const worlds: [string, Traits][] = [
  ['a calm service', {}],
  ['ties in another order at every request', { shuffleTies: true }],
  ['bounds widened to days', { widen: 'day' }],
];

describe.each(worlds)('a stream that ends with a bulk import, on %s', (_name, traits) => {
  test.each([
    ['after it has settled', HOUR],
    ['days later', 3 * DAY],
  ])('is read by a first sync %s, and certified', async (_when, ms) => {
    const sync = createSandboxSync({ clicks: 1200, traits });
    importInBulk(sync, 1050);
    sync.pass(ms);
    for (let run = 0; run < 3 && !isComplete(sync); run++) await sync.run();
    expect(sync.missing()).toEqual([]);
    expect(isComplete(sync)).toBe(true);
  });

  test('is read by a sync that was complete before it, and later polls stay complete and short', async () => {
    const sync = createSandboxSync({ clicks: 1200, traits });
    await sync.run();
    importInBulk(sync, 1050);
    sync.pass(HOUR);
    for (let run = 0; run < 3 && !isComplete(sync); run++) await sync.run();
    expect([sync.missing().length, isComplete(sync)]).toEqual([0, true]);
    sync.pass(5 * MINUTE);
    const before = sync.api.queries.length;
    expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: false });
    expect(isComplete(sync)).toBe(true);
    expect(sync.api.queries.length - before).toBeLessThanOrEqual(6);
  });
});

test('a stream of one instant: its order cannot be known, so all rows are read and none certified', async () => {
  const sync = createSandboxSync({ clicks: 0 });
  const at = sync.now();
  importInBulk(sync, 1050);
  sync.pass(HOUR);
  expect(await sync.run()).toMatchObject({ error: undefined, hasDoubts: true });
  expect([sync.missing().length, sync.watermark()]).toEqual([0, at]);
  expect(sync.api.queries.length).toBeLessThanOrEqual(60);
});

test.each<[string, Traits]>([
  ['repeats its first page', { deepPages: 'repeat@1' }],
  ['repeats it in another order each time', { deepPages: 'repeat@1', shuffleTies: true }],
])('a service that %s is not paged through for ever', async (_name, traits) => {
  const sync = createSandboxSync({ clicks: 1200, traits });
  importInBulk(sync, 1050);
  sync.pass(HOUR);
  await sync.run();
  expect(isComplete(sync) && sync.missing().length > 0).toBe(false);
  expect(sync.api.queries.length).toBeLessThanOrEqual(420);
});

/** As `verify` reads: nothing is known, and the window reaches the present. */
test.each([2, 4, 6, 8, 10])('bursts smaller than a page that end the stream are read anew (seed %i)', async (seed) => {
  const sync = createSandboxSync({ seed, clicks: 80, traits: { shuffleTies: true, duplicates: 0.02 } });
  for (const quiet of [MINUTE, 24_000, 4 * MINUTE]) {
    importInBulk(sync, 30);
    sync.pass(quiet);
  }
  const reader = createReader({
    ...{ api: sync.api, stream: 'clicks', filters: {}, flatten: createFlatten(STREAMS.clicks), now: sync.now },
    ...{ profile: { ...UNKNOWN_PROFILE, pageRows: 1000, rowGapMs: 1000 }, settleMs: 15_000 },
  });
  const window = { start: sync.now() - 5 * DAY, end: sync.now() - 15_000 };
  const open: unknown[] = [];
  for await (const slice of reader.sweep({ window, lane: 'repair', signal: new AbortController().signal }))
    if (slice.window && !slice.certified) open.push(slice);
  expect(open).toEqual([]);
});
