import { describe, expect, test } from 'vitest';
import type { Traits } from '../../src/sandbox/traits.ts';
import { createSandboxSync, DAY, HOUR, MINUTE, POLICY, type SandboxSync } from '../support/sandbox-sync.ts';

/** The newest instant has more rows than a page, and nothing follows it: a bulk import, then silence. */
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

describe.each(worlds)('a bulk import is the last there is, on %s', (_name, traits) => {
  test.each([
    ['after it has settled', HOUR],
    ['days later', 3 * DAY],
  ])('read by a first sync %s, and certified', async (_when, ms) => {
    const sync = createSandboxSync({ clicks: 1200, traits });
    importInBulk(sync, 1050);
    sync.pass(ms);
    for (let run = 0; run < 3 && !isComplete(sync); run++) await sync.run();
    expect(sync.missing()).toEqual([]);
    expect(isComplete(sync)).toBe(true);
  });

  test('read by a sync that was complete before it, and the polls after it stay complete and short', async () => {
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

test('a stream of that instant alone: its order cannot be told, so all rows come and it is not certified', async () => {
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
])('a service that %s is not paged through without end', async (_name, traits) => {
  const sync = createSandboxSync({ clicks: 1200, traits });
  importInBulk(sync, 1050);
  sync.pass(HOUR);
  await sync.run();
  expect(isComplete(sync) && sync.missing().length > 0).toBe(false);
  expect(sync.api.queries.length).toBeLessThanOrEqual(420);
});
