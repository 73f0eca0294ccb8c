import type { Instant } from '../../model/instant.ts';
import type { Pass } from './pass.ts';

/** What several passes over the listing prove together. */
export interface Verdict {
  /** Why the listing is not proven; undefined if it is. */
  note: string | undefined;
  /** The links that exist. */
  present: ReadonlySet<string>;
  /** The service leaves out links that may exist, whatever the last two passes agree on. */
  hidesLinks: boolean;
  /** The last pass does not show some earlier links: another pass may tell why. */
  isOpen: boolean;
}

/** The Date header has whole seconds. */
const CLOCK_MS = 2000;
/** The share of links, by estimate, that every pass may have skipped. */
const MOST_UNSEEN = 0.01;
/** The number of links that may share a creation time, on average: the order of more proves nothing. */
const MOST_TIED = 4;
/** Passes with this share of page edges in common may have lost the same links. */
const SAME_EDGES = 0.5;

/**
 * Two passes that show the same links are proof, if their pages end elsewhere: what one missed by chance, the other would show. Links
 * created during the listing, by their own time, do not count.
 *
 * Passes that differ are proof only if both are in order of creation, where only removals move links: each shifts the links after it across
 * a page edge. Then a link that one pass misses and a later one shows must have slipped across an edge; a removed one must be missing in
 * two passes. In any other order, or at the end of the list, a removed link cannot be told from one that moved, or that a limit cuts off.
 *
 * A link that slipped in every pass is seen by none. The number of these is estimated from how many each pass missed, as in the
 * capture-recapture method.
 */
export function judge(passes: readonly Pass[], createdAt: (id: string) => Instant): Verdict {
  const maps = passes.map((pass) => mapOf(pass, createdAt));
  const present = new Set<string>();
  const missed = passes.map(() => 0);
  let odd = 0;
  let hidden = 0;
  let vanished = 0;
  let isOpen = false;
  for (const id of new Set(passes.flatMap(({ ids }) => [...ids]))) {
    const last = passes.findLastIndex(({ ids }) => ids.has(id));
    const absent = passes.flatMap(({ ids, beganAt }, i) =>
      !ids.has(id) && (i > last || createdAt(id) < beganAt - CLOCK_MS) ? [i] : [],
    );
    const positions = absent.map((i) => positionIn(maps[i] as PassMap, maps[last] as PassMap, id, createdAt));
    for (const [n, i] of absent.entries()) {
      if (positions[n] !== 'between' || i < last) missed[i] = (missed[i] ?? 0) + 1;
    }
    const isGone = absent.filter((i) => i > last).length > 1;
    const isExplained = isGone
      ? positions.some((place) => place !== 'end') && !positions.includes('moved')
      : positions.every((place, n) => place === 'edge' || (place === 'between' && (absent[n] ?? 0) > last));
    if (!isExplained) odd++;
    if (isGone && !isExplained) vanished++;
    if (positions.some((place, n) => place === 'between' && (absent[n] ?? 0) < last)) hidden++;
    if (isGone) continue;
    present.add(id);
    isOpen ||= absent.some((i) => i > last);
  }
  const unseen = missed.reduce((product, n) => product * n, 1) / Math.max(1, present.size) ** (passes.length - 1);
  const note =
    shapeFault(passes, maps) ??
    (hidden > 0 ? `existing links are missing from the middle of a page: ${hidden}` : undefined) ??
    (odd > 0 ? `passes do not show the same links, and removals do not explain it: ${odd}` : undefined) ??
    (unseen > MOST_UNSEEN ? `each pass missed links that another showed: ${missed.join(', ')}` : undefined);
  return { note, present, hidesLinks: hidden + vanished > 0, isOpen };
}

/** The fault that makes two passes one: the service shows the same pages for any question. */
function shapeFault(passes: readonly Pass[], maps: readonly PassMap[]): string | undefined {
  if (passes.length < 2) return 'there was only one pass';
  const paged = maps.filter(({ edges }) => edges.size > 0);
  if (paged.length === 0) {
    return passes.some(({ isEndSeen }) => isEndSeen) ? undefined : 'every page is the same: the service ignores page';
  }
  const [first, ...others] = paged as [PassMap, ...PassMap[]];
  const isElsewhere = ({ edges }: PassMap): boolean =>
    [...edges].filter((edge) => first.edges.has(edge)).length < edges.size * SAME_EDGES;
  // A pass without edges showed all links on one page.
  return others.some(isElsewhere) || paged.length < maps.length
    ? undefined
    : 'the service ends its pages at the same links whatever pageSize and sortOrder it is asked for';
}

/** The position of each link in a pass. */
interface PassMap {
  order: readonly string[];
  at: ReadonlyMap<string, { index: number; page: number }>;
  /** The last link of a page and the first of the next, in either order. */
  edges: ReadonlySet<string>;
  /** Whether it is in order of creation, from either end; false if many links share a time or have none. */
  isByAge: boolean;
}

function mapOf({ pages }: Pass, createdAt: (id: string) => Instant): PassMap {
  const at = new Map<string, { index: number; page: number }>();
  for (const [page, ids] of pages.entries()) for (const id of ids) at.set(id, { index: at.size, page });
  const edges = pages.slice(1).map((ids, i) => [pages[i]?.at(-1) ?? '', ids[0] ?? ''].sort().join(' '));
  const order = pages.flat();
  const times = order.map(createdAt);
  const steps = times.slice(1).map((time, i) => Math.sign(time - (times[i] ?? 0)));
  const isByAge =
    [1, -1].some((way) => steps.every((step) => step !== way)) && new Set(times).size * MOST_TIED > times.length;
  return { order, at, edges: new Set(edges), isByAge };
}

/**
 * The position that a missing link would have in a pass, by the previous and next links in a pass that shows it: between two links of one
 * page, at the edge of a page, or at an end of the list; `moved` if the order proves nothing. Links of one instant may come in any order,
 * and each may have slipped: such a previous or next link proves nothing.
 */
function positionIn(
  pass: PassMap,
  shown: PassMap,
  id: string,
  createdAt: (id: string) => Instant,
): 'between' | 'edge' | 'end' | 'moved' {
  if (!pass.isByAge || !shown.isByAge) return 'moved';
  const index = shown.at.get(id)?.index ?? 0;
  const nextShown = (step: 1 | -1): { page: number; isTied: boolean } | undefined => {
    for (let i = index + step; i >= 0 && i < shown.order.length; i += step) {
      const other = shown.order[i] ?? '';
      const place = pass.at.get(other);
      if (place) return { page: place.page, isTied: createdAt(other) === createdAt(id) };
    }
    return undefined;
  };
  const [before, after] = [nextShown(-1), nextShown(1)];
  if (!before || !after) return 'end';
  return !before.isTied && !after.isTied && before.page === after.page ? 'between' : 'edge';
}
