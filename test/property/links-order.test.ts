import { expect, test } from 'vitest';
import { createFlattenLink } from '../../src/extract/links/link-row.ts';
import { listLinks } from '../../src/extract/links/listing.ts';
import { StopStream } from '../../src/model/errors.ts';
import { createRandom } from '../../src/sandbox/data/random.ts';

/** Listings in unusual orders, with rows that flicker, limits and holes: a proven one lacks no link that always existed. */

interface Link {
  id: string;
  createdAt: number;
  clickedAt: number;
}

interface Odd {
  links?: number;
  by?: keyof Link;
  isOrderIgnored?: boolean;
  /** Links with the same creation time. */
  tied?: number;
  /** Clicks between two requests. */
  clicks?: number;
  /** Requests between a creation and deletion. */
  churn?: number;
  /** The share of rows missing from an answer. */
  hidden?: number;
  mostPages?: number;
  mostRows?: number;
  /** Pages after the last are refused. */
  isEndRefused?: boolean;
  /** From this pass on, it shows at most so many of the newest or oldest links. */
  stale?: { from: number; links: number };
  /** Pages of 100 that are empty, from the first to the second. */
  hole?: [number, number];
}

async function list(odd: Odd, seed: number) {
  const random = createRandom(seed);
  const flatten = createFlattenLink();
  let now = Date.UTC(2026, 10, 1);
  let made = 0;
  const make = (at: number): Link => ({ id: `link_${made++}`, createdAt: at, clickedAt: at });
  let links = Array.from({ length: odd.links ?? 400 }, (_, i) =>
    make(now - 86_400_000 + Math.floor(i / (odd.tied ?? 1)) * 1000),
  );
  const always = new Set(links.map(({ id }) => id));
  let requests = 0;
  let pass = 0;
  let lastSize = 0;
  const { isProven, rows, note } = await listLinks(async ({ page, pageSize, sortOrder }) => {
    requests += 1;
    now += 50;
    for (let i = 0; i < (odd.clicks ?? 0); i++) {
      const link = links[random.int(0, links.length - 1)];
      if (link) link.clickedAt = now + i / 100;
    }
    if (odd.churn && requests % odd.churn === 0) {
      const [gone] = links.splice(random.int(0, links.length - 1), 1);
      if (gone) always.delete(gone.id);
      links = [...links, make(now)];
    }
    if (page === 1 && pageSize !== lastSize) pass += 1;
    lastSize = pageSize;
    const by = odd.by ?? 'createdAt';
    const isStale = odd.stale !== undefined && pass >= odd.stale.from;
    const shownNow = isStale ? links.slice(0, odd.stale?.links) : links;
    const sorted = [...shownNow].sort((a, b) => Number(a[by]) - Number(b[by]));
    if (odd.isOrderIgnored || sortOrder === 'desc') sorted.reverse();
    const from = (page - 1) * pageSize;
    if (odd.isEndRefused && from >= sorted.length)
      throw new StopStream('no such page', { answer: { status: 422, code: 'unprocessable_entity', message: '' } });
    const isEmpty =
      page < 1 ||
      page > (odd.mostPages ?? Infinity) ||
      (odd.hole && from >= odd.hole[0] * 100 && from < odd.hole[1] * 100);
    const shown = isEmpty ? [] : sorted.slice(0, odd.mostRows).slice(from, from + pageSize);
    const answer = shown
      .filter(() => !random.chance(odd.hidden ?? 0))
      .map(({ id, createdAt }) => flatten({ id, createdAt: new Date(createdAt).toISOString() }));
    return { rows: answer, now };
  }, false);
  const ids = new Set(rows.map(({ id }) => id));
  return { isProven, note, requests, ids, lost: [...always].filter((id) => !ids.has(id)) };
}

const ODD: ReadonlyArray<[string, Odd, 'proven' | 'never' | 'either']> = [
  ['in order of creation', {}, 'proven'],
  ['in its own order', { by: 'clickedAt' }, 'proven'],
  ['refuses pages after the last', { isEndRefused: true }, 'proven'],
  ['refuses pages after the last, order ignored', { isEndRefused: true, isOrderIgnored: true }, 'proven'],
  ['created and deleted', { churn: 3 }, 'proven'],
  ['created and deleted, three at each instant', { churn: 3, tied: 3 }, 'proven'],
  ['created and deleted, all at one instant', { churn: 3, tied: 400 }, 'either'],
  ['created and deleted, order ignored', { churn: 3, isOrderIgnored: true }, 'proven'],
  ['by the last click', { by: 'clickedAt', clicks: 1 }, 'either'],
  ['by the last click, order ignored', { by: 'clickedAt', clicks: 1, isOrderIgnored: true }, 'either'],
  ['by the last click, many', { by: 'clickedAt', clicks: 5 }, 'either'],
  ['rows are hidden sometimes', { hidden: 0.003 }, 'either'],
  ['rows are hidden often', { hidden: 0.01 }, 'either'],
  ['a stale replica from the second pass on', { links: 600, stale: { from: 2, links: 570 } }, 'never'],
  ['a stale replica in the third pass', { links: 600, stale: { from: 3, links: 570 } }, 'either'],
  ['nothing from the second pass on', { links: 600, stale: { from: 2, links: 0 } }, 'never'],
  ['ten pages at most', { links: 1500, mostPages: 10 }, 'never'],
  ['ten pages at most, order ignored', { links: 1500, mostPages: 10, isOrderIgnored: true }, 'never'],
  ['a thousand rows at most', { links: 1500, mostRows: 1000 }, 'never'],
  ['a thousand rows at most, order ignored', { links: 1500, mostRows: 1000, isOrderIgnored: true }, 'never'],
  ['a hole in the middle', { links: 1400, hole: [5, 10] }, 'never'],
  ['a hole in the middle, order ignored', { links: 1400, hole: [5, 10], isOrderIgnored: true }, 'never'],
];

test.each(ODD)('%s', async (_name, odd, wanted) => {
  let proven = 0;
  const seeds = wanted === 'never' ? 2 : 12;
  for (let seed = 1; seed <= seeds; seed++) {
    const found = await list(odd, seed);
    // A row hidden in both passes stays unseen: at 0.003, in one of 280 listings of 400 links, such as seed 18.
    if (found.isProven) expect({ seed, lost: found.lost }).toEqual({ seed, lost: [] });
    if (found.isProven) proven += 1;
    else expect(found.note).toBeTruthy();
  }
  if (wanted === 'proven') expect(proven).toBeGreaterThanOrEqual(seeds * 0.9);
  if (wanted === 'never') expect(proven).toBe(0);
});

test('an unproven listing keeps every link that was shown', async () => {
  const { isProven, lost } = await list({ links: 1500, mostRows: 1000 }, 1);
  expect({ isProven, lost }).toEqual({ isProven: false, lost: [] });
});
