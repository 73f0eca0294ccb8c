import type { Predicate } from './filters.ts';
import type { EventsQuery } from './params.ts';
import type { Random } from './random.ts';
import type { Store } from './store.ts';
import type { Traits } from './traits.ts';
import type { StoredEvent } from './types.ts';
import type { TimeRange } from './window.ts';

export interface PageRequest {
  store: Store;
  query: EventsQuery;
  range: TimeRange;
  filter: Predicate | undefined;
  traits: Traits;
  /** Only for the order of ties, and only with the trait that shuffles them. */
  random: Random;
}

/** The rows of one page, before anything is filtered out after LIMIT and OFFSET. */
export function pageOf({ store, query, range, filter, traits, random }: PageRequest): StoredEvent[] {
  const all = store.all(query.stream);
  let low = store.lowerBound(query.stream, range.from);
  let high = store.lowerBound(query.stream, range.until);
  let rows = all;
  if (filter) {
    rows = all.slice(low, high).filter(filter);
    low = 0;
    high = rows.length;
  }
  const total = high - low;
  let offset = (query.page - 1) * query.limit;
  if (offset >= total) {
    if (traits.lastPage !== 'repeat' || total === 0) return [];
    offset = Math.floor((total - 1) / query.limit) * query.limit;
  }
  const size = Math.min(query.limit, total - offset);
  // In descending order the page is the mirror of an ascending slice, counted from the end.
  const from = query.ascending ? low + offset : high - offset - size;
  const page = traits.shuffleTies
    ? shuffledSlice(rows, { low, high, from, to: from + size }, random)
    : rows.slice(from, from + size);
  return query.ascending ? page : page.reverse();
}

/** Ties reach beyond the page: every group of equal instants that the slice touches is shuffled whole, then cut. */
function shuffledSlice(
  rows: readonly StoredEvent[],
  { low, high, from, to }: { low: number; high: number; from: number; to: number },
  random: Random,
): StoredEvent[] {
  let first = from;
  let last = to;
  while (first > low && rows[first - 1]?.at === rows[from]?.at) first -= 1;
  while (last < high && rows[last]?.at === rows[to - 1]?.at) last += 1;
  const shuffled = rows.slice(first, last);
  for (let begin = 0; begin < shuffled.length; ) {
    let end = begin + 1;
    while (shuffled[end]?.at === shuffled[begin]?.at && end < shuffled.length) end += 1;
    const group = random.shuffle(shuffled.slice(begin, end));
    for (const [index, event] of group.entries()) shuffled[begin + index] = event;
    begin = end;
  }
  return shuffled.slice(from - first, to - first);
}
