import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lowestCursor, readCursor } from '../../src/cursor/cursors.ts';
import { acquireLease, checkFence } from '../../src/cursor/leases.ts';
import { type Advance, applyAdvance, readLedger, type Span } from '../../src/cursor/ledger.ts';
import type { Entry } from '../../src/model/window.ts';
import '../support/fixed-seed.ts';
import { openEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { createMemoryLedger } from '../support/memory-sink.ts';
import { certified, MINUTE, NOON, newSource } from '../support/sink-harness.ts';

const { db } = await forThisFile(openEngine());

/** A separate feed, and functions that advance it. */
async function openFeed(sinks = ['warehouse']) {
  const lease = await acquireLease(db, newSource(), 'clicks', 'test');
  const [sink = ''] = sinks;
  const feed = { source: lease.source, stream: lease.stream, sink };
  return {
    feed,
    advance: (change: Partial<Advance>) => {
      const { epoch } = lease;
      const base = {
        ...feed,
        commitId: 'commit-1',
        epoch,
        runId: '20261114T120000-00000001',
        since: NOON,
        spans: [],
      };
      const advance = { ...base, newestSeen: undefined, ...change };
      return db.transaction(async (tx) => applyAdvance(tx, await checkFence(tx, advance), advance));
    },
    cursor: (name = sink) => readCursor(db, { ...feed, sink: name }),
    ledger: (name = sink) => readLedger(db, { ...feed, sink: name }, 0),
  };
}

const at = (minutes: number): number => NOON + minutes * MINUTE;
const unproven = (start: number, end: number, note?: string): Span => ({
  start,
  end,
  certified: undefined,
  rows: 0,
  note,
});

describe('any sequence of windows', () => {
  /** Six hours a step, so that days are crossed; every other bound has microseconds. */
  const bound = (step: number): number => NOON + step * 360 * MINUTE + (step % 2 === 1 ? 0.123 : 0);
  const STEPS = 16;
  const span = fc
    .record({ from: fc.nat(STEPS - 1), length: fc.integer({ min: 1, max: 6 }), certified: fc.boolean() })
    .map(({ from, length, certified: isProven }): Span & { from: number; to: number } => {
      const to = Math.min(STEPS, from + length);
      return { from, to, ...certified(bound(from), bound(to), 1), ...(!isProven && { certified: undefined }) };
    });
  const steps = fc.array(
    fc.record({ spans: fc.array(span, { maxLength: 3 }), since: fc.constantFrom(4, 4, 4, 2, 0) }),
    {
      minLength: 1,
      maxLength: 10,
    },
  );

  /** Which neighbours were merged depends on the order; what is covered, and how, does not. */
  const stretches = (entries: readonly Entry[]) =>
    entries.reduce<Array<{ start: number; end: number; isProven: boolean }>>(
      (all, { start, end, certified: isProven }) => {
        const last = all.at(-1);
        if (last?.end === start && last.isProven === isProven) last.end = end;
        else all.push({ start, end, isProven });
        return all;
      },
      [],
    );

  it('gives the same result in the database, the ledger in memory and a count of the cells', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (advances) => {
        const { advance, cursor, ledger } = await openFeed();
        const cells = new Array<boolean | undefined>(STEPS).fill(undefined);
        const model = createMemoryLedger(() => 0);
        let since = STEPS;
        let before = Number.NEGATIVE_INFINITY;
        for (const { spans, since: from } of advances) {
          await advance({ spans, since: bound(from) });
          model.apply({ spans, since: bound(from), newestSeen: undefined, runId: '20261114T120000-00000001' });
          if (from < since) before = Number.NEGATIVE_INFINITY;
          since = Math.min(since, from);
          for (const { from: a, to: b, ...added } of spans) {
            for (let cell = a; cell < b; cell++) cells[cell] = cells[cell] || added.certified !== undefined;
          }
          const found = await ledger();
          expect(stretches(found)).toEqual(stretches(model.entries()));
          for (const [cell, state] of cells.entries()) {
            const covering = found.filter((entry) => entry.start < bound(cell + 1) && entry.end > bound(cell));
            expect(covering.map((entry) => entry.certified)).toEqual(state === undefined ? [] : [state]);
          }
          let reached = since;
          while (cells[reached] === true) reached += 1;
          const through = reached > since ? bound(reached) : undefined;
          const expected = { since: bound(since), completeThrough: through };
          expect([await cursor(), model.cursor()]).toMatchObject([expected, expected]);
          expect(through ?? Number.NEGATIVE_INFINITY).toBeGreaterThanOrEqual(before);
          before = through ?? before;
        }
      }),
      { numRuns: 30 },
    );
  });
});

it('never moves the watermark back: not for an unproven or older window, or a later since', async () => {
  const { advance, cursor, ledger, feed } = await openFeed();
  await advance({ spans: [certified(at(0), at(30))] });
  await advance({ spans: [unproven(at(10), at(20), 'could not be read again')] });
  await advance({ spans: [certified(at(0), at(5))] });
  await advance({ since: at(20), spans: [] });
  expect(await cursor()).toMatchObject({ since: at(0), completeThrough: at(30) });
  expect(await ledger()).toMatchObject([{ start: at(0), end: at(30), certified: true }]);
  // Nor after somebody deletes ledger rows.
  await db.query({ text: 'delete from tributary.windows where source = $1', values: [feed.source] });
  await advance({ spans: [unproven(at(10), at(20))] });
  expect(await cursor()).toMatchObject({ completeThrough: at(30) });
});

it('merges neighbours of one day, so that polling leaves one entry a day', async () => {
  const { advance, ledger, cursor } = await openFeed();
  for (let minute = 0; minute < 10; minute++) await advance({ spans: [certified(at(minute), at(minute + 1), 2)] });
  expect(await ledger()).toMatchObject([{ start: at(0), end: at(10), rows: 20 }]);
  const midnight = at(12 * 60);
  await advance({ spans: [certified(at(10), midnight), certified(midnight, midnight + MINUTE)] });
  expect((await ledger()).map(({ start, end }) => [start, end])).toEqual([
    [at(0), midnight],
    [midnight, midnight + MINUTE],
  ]);
  expect(await cursor()).toMatchObject({ completeThrough: midnight + MINUTE });
});

it('keeps entries with different states or notes apart, and the text of the note', async () => {
  const { advance, ledger } = await openFeed();
  const note = 'the service said "nö\0"';
  await advance({ spans: [certified(at(0), at(1)), unproven(at(1), at(2), note), unproven(at(2), at(3), 'other')] });
  expect((await ledger()).map((entry) => [entry.certified, entry.note])).toEqual([
    [true, undefined],
    [false, 'the service said "nö\ufffd"'],
    [false, 'other'],
  ]);
});

it('keeps the maximum of newest, to the microsecond', async () => {
  const { advance, cursor } = await openFeed();
  await advance({ newestSeen: at(7) + 0.456 });
  await advance({ newestSeen: undefined });
  await advance({});
  expect(await cursor()).toMatchObject({ newestSeen: at(7) + 0.456 });
});

it('keeps two sinks apart, and reports their common progress', async () => {
  const { advance, cursor, ledger, feed } = await openFeed(['warehouse', 'lake']);
  const together = () => lowestCursor(db, { ...feed, sinks: ['warehouse', 'lake'] });
  expect(await together()).toBeUndefined();
  await advance({ spans: [certified(at(0), at(30))], newestSeen: at(29) });
  expect(await together()).toEqual({
    since: NOON,
    completeThrough: undefined,
    newestSeen: undefined,
  });
  await advance({ sink: 'lake', spans: [certified(at(0), at(10))], newestSeen: at(9) });
  expect(await cursor()).toMatchObject({ completeThrough: at(30) });
  expect(await cursor('lake')).toMatchObject({ completeThrough: at(10) });
  expect(await ledger('lake')).toHaveLength(1);
  expect(await together()).toEqual({ since: NOON, completeThrough: at(10), newestSeen: at(9) });
});

it('writes nothing without the lease', async () => {
  const { advance, cursor, ledger } = await openFeed();
  await expect(advance({ epoch: 99, spans: [certified(at(0), at(1))] })).rejects.toThrow(
    /lost its lease on the stream/,
  );
  expect(await cursor()).toBeUndefined();
  expect(await ledger()).toEqual([]);
});
