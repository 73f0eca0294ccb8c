import { describe, expect, test } from 'vitest';
import { createFlattenLink } from '../../src/extract/links/link-row.ts';
import { type Listing, listLinks } from '../../src/extract/links/listing.ts';
import type { AskPage } from '../../src/extract/links/pass.ts';
import { StopStream } from '../../src/model/errors.ts';
import { createRandom, type Random } from '../../src/sandbox/data/random.ts';
import { createLinkListing } from '../../src/sandbox/link-listing.ts';
import { HttpError } from '../../src/sandbox/params.ts';
import { createOddBehaviour } from '../support/odd-service/service.ts';
import { parseTraits } from '../support/odd-service/traits.ts';

/** The reader against the sandbox's listing, without HTTP: what it sees, its result, and the truth. */
async function list(count: number, traits: string[], { seed = 1, hadLinks = false, change = NOTHING } = {}) {
  let now = Date.UTC(2026, 10, 1);
  const flatten = createFlattenLink();
  const { page } = createOddBehaviour(parseTraits(traits));
  const service = createLinkListing({ links: [], historyStart: now }, { count, seed, now: () => now, page });
  const idsNow = (): Set<string> => new Set(service.all().map(({ id }) => id));
  /** The successive sets of ids, in order. */
  const states = [idsNow()];
  let requests = 0;
  const ask: AskPage = async ({ page, pageSize, sortOrder }) => {
    requests += 1;
    now += 50;
    change(service, requests);
    const params = new URLSearchParams({ page: `${page}`, pageSize: `${pageSize}`, sortBy: 'createdAt', sortOrder });
    try {
      const { body } = service.page(params, { baseUrl: '', count: 0, now, links: new Map() });
      return { rows: (JSON.parse(body) as unknown[]).map(flatten), now };
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      throw new StopStream(error.message, { answer: { status: error.status, code: error.code, message: '' } });
    } finally {
      states.push(idsNow());
    }
  };
  const listing = await listLinks(ask, hadLinks);
  return { listing, requests, states, ids: new Set(listing.rows.map(({ id }) => id)) };
}

type Change = (service: ReturnType<typeof createLinkListing>, request: number) => void;
const NOTHING: Change = () => {};

const verdictOf = ({ isProven, note }: Listing): string => (isProven ? 'proven' : `not proven: ${note}`);

/** A link that always existed must be in the listing; one that never did must not. */
function faultsOf({ ids, states }: Awaited<ReturnType<typeof list>>): string[] {
  const always = [...(states[0] ?? [])].filter((id) => states.every((state) => state.has(id)));
  const ever = new Set(states.flatMap((state) => [...state]));
  return [
    ...always.filter((id) => !ids.has(id)).map((id) => `lost ${id}`),
    ...[...ids].filter((id) => !ever.has(id)).map((id) => `invented ${id}`),
  ];
}

describe('a listing at rest is proven', () => {
  test.each([
    ['as in the contract', [], 300],
    ['one page', [], 40],
    ['one full page', [], 100],
    ['no link', [], 0],
    ['one link', [], 1],
    ['caps pageSize', ['limitCap=50'], 300],
    ['caps pageSize at one page', ['limitCap=50'], 50],
    ['ignores pageSize', ['ignoreLimit=40'], 310],
    ['ignores sortOrder', ['sortOrder=ignored'], 300],
    ['reverses sortOrder', ['sortOrder=opposite'], 300],
    ['repeats rows', ['repeatRows=0.3'], 300],
    ['shows [] sometimes', ['emptyAnswers=every:4'], 300],
    ['begins with []', ['emptyAnswers=first:1'], 300],
    ['counts from 0', ['pagesFromZero'], 300],
    ['counts from 0, one page', ['pagesFromZero'], 30],
    ['repeats its last page', ['lastPage=repeat'], 300],
    ['repeats its only page', ['lastPage=repeat'], 30],
    ['cuts its pages short', ['partial=0.2', 'limitCap=60'], 59],
    [
      'all at once',
      ['pagesFromZero', 'limitCap=30', 'sortOrder=ignored', 'repeatRows=0.2', 'emptyAnswers=every:5'],
      300,
    ],
  ] as const)('%s', async (_name, traits, count) => {
    const seen = await list(count, [...traits]);
    expect(faultsOf(seen)).toEqual([]);
    expect(verdictOf(seen.listing)).toBe('proven');
    expect(seen.ids.size).toBe(count);
    // Three passes at most, each with its pages, the empty ones twice, and single rows after the end.
    const pages = Math.ceil(count / 26) + 1;
    expect(seen.requests).toBeLessThanOrEqual(3 * (2 * pages + 8 + 3));
  });
});

describe('an untrustworthy listing is not proven', () => {
  test.each([
    ['every page is the first', ['ignorePage'], 300],
    ['every page is the first, of any size', ['ignorePage', 'ignoreLimit=100', 'sortOrder=ignored'], 300],
    ['the same pages for every query', ['ignoreLimit=100', 'sortOrder=ignored'], 300],
    ['drops the last row of every page', ['dropLast'], 300],
    ['rows come and go', ['flapping=0.2'], 300],
    ['pages after the second are empty', ['deepPages=empty@2'], 300],
  ] as const)('%s', async (_name, traits, count) => {
    const { listing } = await list(count, [...traits]);
    expect(verdictOf(listing)).toMatch(/^not proven: ./);
  });

  test('an empty listing proves nothing if there were links', async () => {
    const { listing } = await list(0, [], { hadLinks: true });
    expect(verdictOf(listing)).toBe('not proven: the service shows no links, although there were some');
  });
});

describe('links are created and deleted between pages', () => {
  const isLong = process.env.TRIBUTARY_PROVE === '1';
  const seeds = isLong ? 8 : 4;
  const every = isLong ? [2, 3, 5] : [3];
  const DRIFTS = ['both', 'insert', 'delete'].flatMap((what) => every.map((requests) => ({ what, requests })));
  const ODD = [[], ['limitCap=40'], ['ignoreLimit=37'], ['sortOrder=ignored'], ['pagesFromZero'], ['repeatRows=0.2']];
  const ALL = DRIFTS.flatMap((drift) => ODD.map((odd) => ({ ...drift, odd })));

  /** Creates or deletes a quiet link, or both, every few requests. */
  const drifting =
    (what: string, requests: number, random: Random): Change =>
    (service, request) => {
      if (request % requests !== 0) return;
      if (what !== 'delete') service.make();
      if (what !== 'insert') service.remove(random.pick(service.all()).id);
    };

  test.each(ALL)('$what every $requests requests, $odd', async ({ what, requests, odd }) => {
    let proven = 0;
    for (let seed = 1; seed <= seeds; seed++) {
      const seen = await list(300, odd, { seed, change: drifting(what, requests, createRandom(seed)) });
      // An unproven listing may be off by a link; a proven one must be right.
      if (seen.listing.isProven) expect({ seed, faults: faultsOf(seen) }).toEqual({ seed, faults: [] });
      if (seen.listing.isProven) proven += 1;
      expect(seen.requests).toBeLessThanOrEqual(3 * (2 * 13 + 8 + 3));
    }
    expect(proven).toBeGreaterThanOrEqual(seeds * 0.75);
  });

  test('a listing lacks a link deleted before the last pass, and has one created before it', async () => {
    const changes: string[] = [];
    const change: Change = (service, request) => {
      if (request === 3)
        changes.push(
          ...service
            .all()
            .slice(20, 23)
            .map(({ id }) => id),
        );
      if (request === 3) for (const id of changes) service.remove(id);
      if (request === 4) changes.push(service.make().id);
    };
    const seen = await list(300, [], { change });
    expect(verdictOf(seen.listing)).toBe('proven');
    expect(changes.map((id) => seen.ids.has(id))).toEqual([false, false, false, true]);
    expect(seen.ids).toEqual(seen.states.at(-1));
  });
});
