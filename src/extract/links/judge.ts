import type { Instant } from '../../model/instant.ts';
import type { Pass } from './pass.ts';

/** What passes over the listing prove together. */
export interface Verdict {
  isProven: boolean;
  /** Why it is not proven. */
  note?: string;
  /** Links that are there. */
  present: ReadonlySet<string>;
  /** Of these, links that were removed or skipped at the edge of a page: nobody can tell yet. */
  doubtful: ReadonlySet<string>;
}

/** The Date header has whole seconds. */
const CLOCK_MS = 2000;
/** So many links, by estimate, may have been skipped by every pass. */
const MOST_UNSEEN = 0.01;
/** Passes with this share of their page edges in common may have lost the same links. */
const SAME_EDGES = 0.5;

/**
 * Links are made and removed while pages are turned, and each removal shifts the pages behind it: a link slips over the edge of a page,
 * unseen. Another pass, with its edges elsewhere, shows it. So a link that only some passes show was made meanwhile (it says so itself),
 * removed meanwhile (a single page shows both of its neighbours, and not it), or slipped over an edge (its neighbours are on two pages).
 * Anything else is no listing that can be trusted.
 *
 * A link that slipped in every pass is seen by none. How many there are follows from how many each pass missed, as in counting fish by
 * catching them twice.
 */
export function judge(passes: readonly Pass[], createdAt: (id: string) => Instant): Verdict {
  const maps = passes.map(mapOf);
  const all = new Set(passes.flatMap(({ ids }) => [...ids]));
  const present = new Set<string>();
  const doubtful = new Set<string>();
  const missed = passes.map(() => 0);
  let odd = 0;
  for (const id of all) {
    const seen = passes.map(({ ids }) => ids.has(id));
    const last = seen.lastIndexOf(true);
    const later = maps.slice(last + 1);
    const map = maps[last] as PassMap;
    if (later.some((other) => placeIn(other, map, id, createdAt) === 'between') || later.length > 1) continue;
    present.add(id);
    if (later.length > 0) doubtful.add(id);
    for (const [i, other] of maps.entries()) {
      if (seen[i] || createdAt(id) >= (passes[i]?.beganAt ?? 0) - CLOCK_MS) continue;
      missed[i] = (missed[i] ?? 0) + 1;
      if (i < last && placeIn(other, map, id, createdAt) !== 'edge') odd++;
    }
  }
  const unseen = missed.reduce((product, n) => product * n, 1) / Math.max(1, present.size) ** (passes.length - 1);
  const note =
    shapeFault(passes, maps) ??
    (odd > 0 ? `links that were there were not shown in the middle of a page: ${odd}` : undefined) ??
    (unseen > MOST_UNSEEN ? `each pass missed links that another showed: ${missed.join(', ')}` : undefined);
  return { isProven: note === undefined, ...(note !== undefined && { note }), present, doubtful };
}

/** What makes two passes one: the service shows the same pages whatever it is asked for. */
function shapeFault(passes: readonly Pass[], maps: readonly PassMap[]): string | undefined {
  if (passes.length < 2) return 'there was only one pass';
  const paged = maps.filter(({ edges }) => edges.size > 0);
  if (paged.length === 0) {
    return passes.some(({ isEndSeen }) => isEndSeen) ? undefined : 'every page is the same: the service ignores page';
  }
  const [first, ...others] = paged as [PassMap, ...PassMap[]];
  const isElsewhere = ({ edges }: PassMap): boolean =>
    [...edges].filter((edge) => first.edges.has(edge)).length < edges.size * SAME_EDGES;
  // A pass without edges showed all on one page.
  return others.some(isElsewhere) || paged.length < maps.length
    ? undefined
    : 'the service ends its pages at the same links whatever pageSize and sortOrder it is asked for';
}

/** Where each link is in a pass. */
interface PassMap {
  order: readonly string[];
  at: ReadonlyMap<string, { index: number; page: number }>;
  /** The last link of a page and the first of the next, in either order. */
  edges: ReadonlySet<string>;
}

function mapOf({ pages }: Pass): PassMap {
  const at = new Map<string, { index: number; page: number }>();
  for (const [page, ids] of pages.entries()) for (const id of ids) at.set(id, { index: at.size, page });
  const edges = pages.slice(1).map((ids, i) => [pages[i]?.at(-1) ?? '', ids[0] ?? ''].sort().join(' '));
  return { order: pages.flat(), at, edges: new Set(edges) };
}

/**
 * Where a link that a pass does not show would be in it, by its neighbours in a pass that shows it: between two links of one page, or at
 * the edge of a page. Links of one instant may come in any order, and those made together have one: their neighbours say nothing, and
 * each may have slipped.
 */
function placeIn(pass: PassMap, shown: PassMap, id: string, createdAt: (id: string) => Instant): 'between' | 'edge' {
  const index = shown.at.get(id)?.index ?? 0;
  const neighbour = (step: 1 | -1): { index: number; page: number; isTied: boolean } | undefined => {
    for (let i = index + step; i >= 0 && i < shown.order.length; i += step) {
      const other = shown.order[i] ?? '';
      const place = pass.at.get(other);
      if (place) return { ...place, isTied: createdAt(other) === createdAt(id) };
    }
    return undefined;
  };
  const [before, after] = [neighbour(-1), neighbour(1)];
  if (before?.isTied || after?.isTied) return 'edge';
  if (before && after) return before.page === after.page ? 'between' : 'edge';
  const end = before ?? after;
  // First or last of all: nothing can have slipped over that end.
  return end && (end.index === 0 || end.index === pass.order.length - 1) ? 'between' : 'edge';
}
