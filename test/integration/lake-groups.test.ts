import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { DAY_MS } from '../../src/model/window.ts';
import { createHistory, MOST_IN_GROUP, START } from '../support/lake-history.ts';
import { type LakePlace, lakePlace } from '../support/lake-place.ts';
import { MINUTE } from '../support/sink-harness.ts';

/** Whatever the order in which rows come: the files of a lake stay whole, sorted, and in few groups. */
let place: LakePlace;
beforeAll(async () => {
  place = await lakePlace({ compression: 'snappy' });
  await place.createSink().prepare(STREAMS.clicks);
});
afterAll(() => place.close());

/** What a sync may do next. Sizes are such that groups fill up and split. */
const SIZE = fc.oneof(
  fc.integer({ min: 1, max: 30 }),
  fc.integer({ min: 1, max: 4000 }),
  fc.constantFrom(5000, 10_000),
);
const STEP = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('fill' as const),
      n: SIZE,
      rounds: fc.integer({ min: 1, max: 3 }),
      stretches: fc.constantFrom(1, 2, 8),
      isReverse: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('late', 'instant', 'edges'), n: SIZE }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('change', 'move', 'vanish', 'forget', 'tidy', 'grow'),
      n: fc.integer({ min: 1, max: 300 }),
    }),
  },
);

const FILL = { kind: 'fill', n: 10_000, rounds: 2, stretches: 2, isReverse: false } as const;
const REST = [
  'change',
  'move',
  'vanish',
  'grow',
  'change',
  'edges',
  'forget',
  'tidy',
  'grow',
  'move',
  'vanish',
  'late',
] as const;
const EVERY = [FILL, ...REST.map((kind) => ({ kind, n: 300 })), { ...FILL, n: 9, isReverse: true }];

it('keeps files whole, sorted and in few groups, whatever the history', async () => {
  const history = fc.tuple(fc.integer(), fc.array(STEP, { minLength: 8, maxLength: 10 }));
  await fc.assert(
    fc.asyncProperty(history, async ([seed, steps]) => {
      const lake = await createHistory(place, seed);
      const { roll, times, commit, check } = lake;
      for (const step of steps) {
        const start = START + roll(20) * 60 * MINUTE;
        if (step.kind === 'fill') {
          // Slices of all stretches, one after the other: as a backfill does that reads them side by side.
          const { rounds, stretches, isReverse } = step;
          const slice = DAY_MS / stretches / rounds;
          for (let i = 0; i < rounds * stretches; i++) {
            const round = Math.floor(i / stretches);
            const from = START + ((i % stretches) * rounds + (isReverse ? rounds - 1 - round : round)) * slice;
            await commit(times(Math.ceil(step.n / stretches), () => from + roll(slice)));
          }
        } else if (step.kind === 'late') await commit(times(step.n, () => START + roll(DAY_MS * 1000) / 1000));
        else if (step.kind === 'instant') await commit(times(step.n, () => start));
        else if (step.kind === 'vanish') await lake.vanish(start, step.n * MINUTE);
        else await lake[step.kind as 'change'](step.n);
        await check();
      }
    }),
    // Every kind of step comes at least once. A failing history is long to shrink, and its steps say enough.
    { numRuns: 2, examples: [[[1, EVERY]]], endOnFailure: true },
  );
});

describe('histories made by hand', () => {
  const HOUR = 60 * MINUTE;

  it('fills a group exactly, and adds to either side of its edges', async () => {
    const { times, commit, check } = await createHistory(place);
    // Even milliseconds first, then odd ones between them; the last would lie beyond, and shares the time of another.
    for (const odd of [0, 1]) {
      const rows = times(10_000, () => 0);
      await commit(rows.map(({ id }, i) => ({ id, at: START + HOUR + Math.min(2 * i + odd, 19_998 - odd) })));
    }
    expect(await check()).toMatchObject([{ rows: MOST_IN_GROUP }]);
    for (const at of [0, 19_998, 19_999, -1, 10_000]) {
      await commit(times(2, () => START + HOUR + at));
      await check();
    }
  });

  it('keeps more rows of one instant than a group holds', async () => {
    const { times, commit, check, change } = await createHistory(place);
    for (let i = 0; i < 5; i++) await commit(times(i === 3 ? 1 : 9000, () => START + HOUR));
    await check();
    await change(50);
    await commit([...times(3, () => START), ...times(3, () => START + HOUR), ...times(3, () => START + 2 * HOUR)]);
    await check();
  });

  it.each([
    ['polls of any size, and a few late rows with each', (i: number) => i, [1, 900, 30, 4, 2600, 1]],
    ['polls in reverse', (i: number) => 39 - i, [400]],
    ['eight stretches side by side', (i: number) => (i % 8) * 5 + Math.floor(i / 8), [500]],
    ['eight stretches, tiny and large batches in turns', (i: number) => (i % 8) * 5 + Math.floor(i / 8), [1, 1500, 3]],
  ])('has few groups after %s', async (_name, slot, sizes) => {
    const { times, commit, check, roll } = await createHistory(place);
    for (let i = 0; i < 40; i++) {
      const from = START + slot(i) * 30 * MINUTE;
      const late = sizes.length > 3 ? times(3, () => START + roll(from + MINUTE - START)) : [];
      await commit([...times(sizes[i % sizes.length] ?? 1, () => from + roll(30 * MINUTE)), ...late]);
      if (i % 10 === 9) await check();
    }
  });

  it('has few groups after bursts with pauses between them', async () => {
    const { times, commit, check, roll } = await createHistory(place);
    for (let i = 0; i < 40; i++) await commit(times(500, () => START + i * 30 * MINUTE + roll(10 * MINUTE)));
    await check();
  });
});
