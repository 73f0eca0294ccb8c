import { describe, expect, test } from 'vitest';
import type { Moment } from '../../src/sandbox/listing.ts';
import { HttpError } from '../../src/sandbox/params.ts';
import { clockOf, type Listed, listPage, type PageQuery, type RowFacts } from '../support/odd-service/listing.ts';
import { parseTraits } from '../support/odd-service/traits.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const MIDNIGHT = Date.UTC(2026, 10, 10);
/** One row an hour over four days: h0 at midnight, h24 a day later. */
const HOURLY: Listed[] = Array.from({ length: 96 }, (_, i) => ({ id: `h${i}`, at: MIDNIGHT + i * HOUR }));
const TIED: Listed[] = Array.from({ length: 12 }, (_, i) => ({ id: `t${i}`, at: MIDNIGHT }));

const WHOLE: PageQuery = { start: MIDNIGHT, end: MIDNIGHT + 4 * DAY, ascending: true, page: 1, limit: 1000 };

interface Asking extends Partial<PageQuery>, Partial<Moment> {
  traits?: string[];
  rows?: readonly Listed[];
  facts?: RowFacts<Listed>;
}

/** Ids of the page, or the status of the refusal. */
function ask({ traits = [], rows = HOURLY, facts, seed = 1, request = 1, now = WHOLE.end, ...asked }: Asking) {
  try {
    const moment = { seed, request, now };
    return listPage(rows, { ...WHOLE, ...asked }, parseTraits(traits), moment, facts).map(({ id }) => id);
  } catch (error) {
    if (error instanceof HttpError) return error.status;
    throw error;
  }
}
const hours = (from: number, until: number): string[] => HOURLY.slice(from, until).map(({ id }) => id);
/** From half past the hour to half past the hour. */
const between = (from: number, until: number) => ({
  start: MIDNIGHT + from * HOUR + HOUR / 2,
  end: MIDNIGHT + until * HOUR + HOUR / 2,
});

describe('bounds, each end by itself', () => {
  const cases: [string, string[], string[]][] = [
    ['kept', [], hours(31, 41)],
    ['both to the day', ['widen=day'], hours(24, 48)],
    ['start to the day', ['widenStart=day'], hours(24, 41)],
    ['start to the day of UTC−8', ['widenStart=day@-8'], hours(8, 41)],
    ['end to the day', ['widenEnd=day'], hours(31, 48)],
    ['end to the day of UTC+5.5', ['widenEnd=day@5.5'], hours(31, 43)],
    ['both, otherwise', ['widenStart=hour', 'widenEnd=day@-8'], hours(30, 56)],
    ['start rounded up to the day', ['roundStart=day'], []],
    ['start rounded up to the day of UTC+14', ['roundStart=day@14'], hours(34, 41)],
    ['end rounded down to the day of UTC+14', ['roundEnd=day@14'], hours(31, 34)],
    ['shifted', ['shiftBounds=8h'], hours(39, 49)],
    ['start ignored', ['ignoreBounds=start'], hours(0, 41)],
    ['end ignored', ['ignoreBounds=end'], hours(31, 96)],
    ['both ignored', ['ignoreBounds'], hours(0, 96)],
  ];
  test.each(cases)('%s', (_name, traits, ids) => {
    expect(ask({ traits, ...between(30, 40) })).toEqual(ids);
  });

  test('start rounded up to the hour leaves out what lies before it', () => {
    const rows = [{ id: 'early', at: MIDNIGHT + 40 * 60_000 }, ...HOURLY.slice(1)];
    expect(ask({ traits: ['roundStart=hour'], rows, ...between(0, 3) })).toEqual(['h1', 'h2', 'h3']);
    expect(ask({ traits: ['roundStart=hour'], rows, start: MIDNIGHT, end: MIDNIGHT + HOUR })).toEqual(['early']);
  });

  test.each([
    ['inclusive', hours(1, 4)],
    ['exclusive', hours(2, 3)],
    ['exclusive-start', hours(2, 4)],
    ['exclusive-end', hours(1, 3)],
  ])('bounds=%s', (bounds, ids) => {
    const asked = { start: MIDNIGHT + HOUR, end: MIDNIGHT + 3 * HOUR };
    expect(ask({ traits: [`bounds=${bounds}`], ...asked })).toEqual(ids);
  });

  test('retention slides with the clock', () => {
    const old = { traits: ['retention=403@3d'], start: MIDNIGHT };
    expect(ask({ ...old, now: MIDNIGHT + 3 * DAY })).toEqual(hours(0, 96));
    expect(ask({ ...old, now: MIDNIGHT + 3 * DAY + 1 })).toBe(403);
    expect(ask({ ...old, traits: ['retention=422@3d'] })).toBe(422);
    expect(ask({ ...old, traits: ['retention=empty@3d', 'widen=day'] })).toEqual([]);
    expect(ask({ ...old, traits: ['retention=clamp@3d'] })).toEqual(hours(24, 96));
  });

  test('ranges that are too wide', () => {
    expect(ask({ traits: ['maxSpan=422@3d'] })).toBe(422);
    expect(ask({ traits: ['maxSpan=empty@3d'] })).toEqual([]);
    expect(ask({ traits: ['maxSpan=clamp@1d'] })).toEqual(hours(0, 24));
    expect(ask({ traits: ['maxSpan=422@4d'] })).toEqual(hours(0, 96));
  });

  test('a window without rows falls back to the last 30 days', () => {
    const empty = { start: MIDNIGHT + 1, end: MIDNIGHT + 2, traits: ['emptyFallsBack'] };
    expect(ask(empty)).toEqual(hours(0, 96));
  });
});

describe('order', () => {
  const pages = (traits: string[], more: Asking = {}): (string[] | number)[] =>
    [1, 2, 3].map((page) => ask({ traits, rows: TIED, page, limit: 4, ...more }));

  test('ties: stable, another at every request, fixed for a page and limit', () => {
    expect(pages([]).flat()).toEqual(TIED.map(({ id }) => id));
    expect(pages(['shuffleTies'], { request: 1 })).not.toEqual(pages(['shuffleTies'], { request: 2 }));
    const paged = pages(['pagedTies'], { request: 1 });
    expect(pages(['pagedTies'], { request: 2 })).toEqual(paged);
    // Every page draws from the whole instant: some rows come twice and some never.
    expect(new Set(paged.flat()).size).toBeLessThan(12);
    expect(pages(['pagedTies'], { limit: 3 }).flat()).not.toEqual(paged.flat().slice(0, 9));
    expect(pages(['pagedTies'], { seed: 2 })).not.toEqual(paged);
  });

  test('sortOrder', () => {
    const first = { limit: 3 };
    expect(ask({ ...first, traits: ['sortOrder=ignored'] })).toEqual(['h95', 'h94', 'h93']);
    expect(ask({ ...first, traits: ['sortOrder=ignored'], ascending: false })).toEqual(['h95', 'h94', 'h93']);
    expect(ask({ ...first, traits: ['sortOrder=opposite'], ascending: false })).toEqual(['h0', 'h1', 'h2']);
    expect(ask({ ...first, traits: ['sortOrder=reversed'] })).toEqual(['h2', 'h1', 'h0']);
    const mixed = ask({ limit: 20, traits: ['sortOrder=mixed'] });
    expect(mixed).not.toEqual(hours(0, 20));
    expect(mixed).toEqual(expect.arrayContaining(hours(0, 20)));
    const sometimes = Array.from({ length: 40 }, (_, i) =>
      ask({ limit: 1, traits: ['sortOrder=sometimes'], request: i }),
    );
    expect(new Set(sometimes.flat())).toEqual(new Set(['h0', 'h95']));
  });

  test('sortJitter: sorted by a time that is not shown', () => {
    const shown = ask({ traits: ['sortJitter=3h'] }) as string[];
    expect(shown).not.toEqual(hours(0, 96));
    for (const [index, id] of shown.entries()) expect(Math.abs(Number(id.slice(1)) - index)).toBeLessThan(7);
  });
});

describe('rows', () => {
  test('hidden rows use a place, poisoned ones break every page, fragile ones only large pages', () => {
    const second: RowFacts<Listed>['hidden'] = ({ id }) => id === 'h1';
    expect(ask({ limit: 3, facts: { hidden: second } })).toEqual(['h0', 'h2']);
    expect(ask({ limit: 3, facts: { poison: second } })).toBe(500);
    expect(ask({ limit: 1, page: 2, facts: { poison: second } })).toBe(422);
    expect(ask({ limit: 3, facts: { fragile: second }, traits: ['fragile=1@2'] })).toBe(500);
    expect(ask({ limit: 2, facts: { fragile: second }, traits: ['fragile=1@2'] })).toEqual(['h0', 'h1']);
  });

  test('flapping rows come and go before LIMIT; the others stay', () => {
    const answers = Array.from({ length: 20 }, (_, i) => ask({ traits: ['flapping=0.2'], request: i }) as string[]);
    const steady = hours(0, 96).filter((id) => answers.every((ids) => ids.includes(id)));
    expect(steady.length).toBeGreaterThan(60);
    expect(steady.length).toBeLessThan(96);
    expect(new Set(answers.map((ids) => ids.length)).size).toBeGreaterThan(3);
    expect(new Set(answers.flat()).size).toBe(96);
  });

  test('a replica that lags does not know what arrived lately', () => {
    const rows = [...HOURLY, { id: 'late', at: MIDNIGHT, arrivedAt: WHOLE.end - 60_000 }].sort((a, b) => a.at - b.at);
    const answers = Array.from({ length: 20 }, (_, i) => ask({ traits: ['replicaLag=5m'], rows, request: i }));
    expect(answers.filter((ids) => (ids as string[]).includes('late')).length).toBeGreaterThan(3);
    expect(answers.filter((ids) => !(ids as string[]).includes('late')).length).toBeGreaterThan(3);
  });

  test('strays and repeated rows', () => {
    const strays = Array.from({ length: 50 }, (_, i) =>
      ask({ traits: ['strays=0.5'], request: i, ...between(30, 40) }),
    );
    const outside = strays.filter((ids) => (ids as string[]).some((id) => !hours(31, 41).includes(id)));
    expect(outside.length).toBeGreaterThan(10);
    expect(outside.length).toBeLessThan(40);
    const repeated = ask({ traits: ['repeatRows=0.3'] }) as string[];
    expect(repeated.length).toBeGreaterThan(96);
    expect([...new Set(repeated)]).toEqual(hours(0, 96));
  });

  test('answers that end early, and full pages without their last row', () => {
    const sizes = Array.from(
      { length: 60 },
      (_, i) => (ask({ traits: ['partial=0.5'], request: i }) as string[]).length,
    );
    expect(sizes.filter((size) => size < 96).length).toBeGreaterThan(15);
    expect(sizes.filter((size) => size === 96).length).toBeGreaterThan(15);
    expect(ask({ traits: ['dropLast'], limit: 10 })).toEqual(hours(0, 9));
    expect(ask({ traits: ['dropLast'], limit: 10, page: 2 })).toEqual(hours(10, 19));
    expect(ask({ traits: ['dropLast'], limit: 10, page: 10 })).toEqual(hours(90, 96));
  });

  test('clocks of several hosts', () => {
    const clocks = Array.from({ length: 40 }, (_, request) =>
      clockOf({ clockJitter: HOUR }, { seed: 1, request, now: 0 }),
    );
    expect(Math.max(...clocks)).toBeGreaterThan(HOUR / 2);
    expect(Math.min(...clocks)).toBeLessThan(-HOUR / 2);
    expect(Math.max(...clocks.map(Math.abs))).toBeLessThanOrEqual(HOUR);
  });

  test('answers without rows: the first ones, or now and then', () => {
    const sizes = (trait: string): number[] =>
      [1, 2, 3, 4, 5, 6].map((request) => (ask({ traits: [trait], request }) as string[]).length);
    expect(sizes('emptyAnswers=first:2')).toEqual([0, 0, 96, 96, 96, 96]);
    expect(sizes('emptyAnswers=every:3')).toEqual([96, 96, 0, 96, 96, 0]);
  });
});

describe('pages and limits', () => {
  const page = (number: number, ...traits: string[]) => ask({ traits, page: number, limit: 10 });

  test('deep pages', () => {
    expect(page(3, 'deepPages=fail@3')).toEqual(hours(20, 30));
    expect(page(4, 'deepPages=fail@3')).toBe(500);
    expect(page(4, 'deepPages=422@3')).toBe(422);
    expect(page(4, 'deepPages=empty@3')).toEqual([]);
    expect(page(4, 'deepPages=repeat@3')).toEqual(hours(20, 30));
  });

  test('the page parameter', () => {
    expect(page(3, 'ignorePage')).toEqual(hours(0, 10));
    expect(page(1, 'pagesFromZero')).toEqual(hours(10, 20));
    expect(page(11)).toEqual([]);
    expect(page(11, 'lastPage=repeat')).toEqual(hours(90, 96));
  });

  test('the result window', () => {
    expect(page(3, 'resultWindow=422@25')).toBe(422);
    expect(page(3, 'resultWindow=empty@25')).toEqual([]);
    expect(page(3, 'resultWindow=cut@25')).toEqual(hours(20, 25));
    expect(page(2, 'resultWindow=422@25')).toEqual(hours(10, 20));
  });

  test('the limit: capped, refused, ignored', () => {
    expect(page(2, 'limitCap=4')).toEqual(hours(4, 8));
    expect(page(1, 'limitMax=9')).toBe(422);
    expect(page(1, 'limitMax=10')).toEqual(hours(0, 10));
    expect(page(2, 'ignoreLimit=30')).toEqual(hours(30, 60));
  });

  test('large answers: cut with more behind, or refused', () => {
    const facts = { bytes: () => 99 };
    expect(ask({ traits: ['cutBytes=501'], limit: 10, facts })).toEqual(hours(0, 5));
    expect(ask({ traits: ['cutBytes=500'], limit: 10, page: 2, facts })).toEqual(hours(10, 14));
    expect(ask({ traits: ['cutBytes=1'], limit: 10, facts })).toEqual(['h0']);
    expect(ask({ traits: ['maxBytes=500'], limit: 10, facts })).toBe(500);
    expect(ask({ traits: ['refuseAbove=413@9'], limit: 10 })).toBe(413);
    expect(ask({ traits: ['refuseAbove=413@9'], limit: 9 })).toEqual(hours(0, 9));
  });
});
