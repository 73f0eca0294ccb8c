import { DAY_MS } from '../model/window.ts';
import type { Behaviour } from './behaviour.ts';
import { generateLinks } from './data/links.ts';
import { createRandom } from './data/random.ts';
import { type Reading, readLink } from './data/shape.ts';
import type { Link } from './data/types.ts';
import type { World } from './data/world.ts';
import type { Listed } from './listing.ts';
import { paramReader } from './params.ts';

type LinkListed = Listed & { link: Link };

const MAX_PAGE_SIZE = 100;
const SORTS = ['createdAt', 'updatedAt', 'clicks'] as const;

/** `GET /links`: the links that events refer to, and quiet ones that never had an event. */
export function createLinkListing(
  /** The world's links had events; it may add to them. */
  { links: active, historyStart }: Pick<World, 'links' | 'historyStart'>,
  { count, seed, now, page: pageOf }: { count: number; seed: number; now(): number; page: Behaviour['page'] },
) {
  // A separate generator: the number of quiet links must not change the events.
  const random = createRandom(seed ^ 0x51e7);
  const quiet = generateLinks(random, now(), historyStart, count).map(withAge);
  let requests = 0;

  /** Archives some links and expires others: both are listed like any other. */
  function withAge(link: Link, i: number): Link {
    if (i % 5 === 1) link.rest.archived = true;
    if (i % 5 === 2) link.rest.expiresAt = new Date(historyStart - DAY_MS).toISOString();
    return link;
  }

  /** Cached while no link is added or removed: there may be a hundred thousand. */
  let known: { of: string; rows: LinkListed[] } | undefined;
  let changes = 0;
  const sorted = (): LinkListed[] => {
    const of = `${changes} ${active.length}`;
    if (known?.of === of) return known.rows;
    const links = [...active, ...quiet].sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
    known = { of, rows: links.map((link) => ({ id: link.id, at: link.createdAt, link })) };
    return known.rows;
  };

  return {
    all: () => sorted().map(({ link }) => link),
    make(): Link {
      const [link] = generateLinks(random, now(), historyStart, 1);
      if (!link) throw new Error('generateLinks returns one link');
      changes += 1;
      quiet.push(Object.assign(link, { createdAt: now(), updatedAt: now() }));
      return link;
    },
    remove(id: string): boolean {
      const index = quiet.findIndex((link) => link.id === id);
      if (index < 0) return false;
      changes += 1;
      quiet.splice(index, 1);
      return true;
    },
    page(params: URLSearchParams, reading: Reading) {
      requests += 1;
      const { sortBy, ...query } = readQuery(params);
      const rows =
        sortBy === 'createdAt'
          ? sorted()
          : sorted()
              .map((row) => ({ ...row, at: row.link[sortBy] }))
              .sort((a, b) => a.at - b.at);
      const shown = pageOf(rows, query, { seed, request: requests, now: now() });
      return { body: JSON.stringify(shown.map(({ link }) => readLink(link, reading))), rows: shown.length };
    },
  };
}

function readQuery(params: URLSearchParams) {
  const { oneOf, whole } = paramReader(params);
  return {
    // The listing decides whether there is a page 0.
    page: whole('page', 1, 0, Number.MAX_SAFE_INTEGER),
    limit: whole('pageSize', MAX_PAGE_SIZE, 1, MAX_PAGE_SIZE),
    sortBy: oneOf('sortBy', SORTS) ?? 'createdAt',
    ascending: oneOf('sortOrder', ['desc', 'asc']) === 'asc',
  };
}
