import type { Row } from '../../model/flatten.ts';
import type { Instant } from '../../model/instant.ts';
import { judge, type Verdict } from './judge.ts';
import { updatedAt } from './link-row.ts';
import { type AskPage, emptyIfRefused, type Pass, type PassPlan, readPass } from './pass.ts';

/** All links of a source. */
export interface Listing {
  /** When it began, by the service's clock: it has every link that existed all the time since then. */
  at: Instant;
  rows: readonly Row[];
  isProven: boolean;
  /** Why it is not proven. */
  note?: string;
}

/** Bounds the requests. */
const MOST_PASSES = 3;
const LARGEST = 100;
/** Limits of services are multiples of this. */
const LIMIT = 1000;
/** Empty pages that may be in the middle of a list, in addition to as many as it has pages. */
const MOST_EMPTY_PAGES = 16;
/** Later passes have smaller pages, by factors that keep page edges apart. */
const SHARES = [1, 0.97, 0.89] as const;

/**
 * Reads all links, in two or three passes with different page edges: see `judge`. The second pass is newest first: if one end of the list
 * moves, the other does not.
 *
 * @param hadLinks Earlier listings or events showed links: then a list without any proves nothing.
 * @param onSeen Progress callback: gets the number of links so far.
 */
export async function listLinks(
  askPage: AskPage,
  hadLinks: boolean,
  onSeen: (links: number) => void = () => {},
): Promise<Listing> {
  const rows = new Map<string, Row>();
  const take = (row: Row): void => {
    const known = rows.get(row.id);
    // Of two readings keep the one with the newer `updatedAt`; of equal ones the later, for its counters.
    if (!known || (updatedAt(row) ?? 0) >= (updatedAt(known) ?? 0)) rows.set(row.id, row);
    if (!known && rows.size % LARGEST === 0) onSeen(rows.size);
  };
  let unusable: string | undefined;
  const ask: AskPage = async (query) => {
    const page = await askPage(query);
    unusable ??= page.unusable;
    return page;
  };
  const createdAt = (id: string): Instant => rows.get(id)?.at ?? 0;
  const passes: Pass[] = [];
  let verdict: Verdict | undefined;
  for (let i = 0; i < MOST_PASSES; i++) {
    passes.push(await readPass(ask, planOf(i, passes), passes.at(-1)?.firstPage, take));
    if (i === 0) continue;
    verdict = judge(passes, createdAt);
    if (verdict.note === undefined && !verdict.isOpen) break;
    // A listing that changed too much during the first pass may have settled.
    const last = i > 1 && !verdict.hidesLinks ? judge(passes.slice(1), createdAt) : verdict;
    if (verdict.note !== undefined && last.note === undefined) verdict = last;
  }
  const { note, present } = verdict as Verdict;
  const why =
    (unusable === undefined ? note : `a record could not be used, ${unusable}`) ??
    (present.size === 0 && (hadLinks || rows.size > 0)
      ? 'the service shows no links, although there were some'
      : undefined) ??
    (await cutFault(ask, passes));
  return {
    at: passes[0]?.beganAt ?? 0,
    // Links that are not proven to be gone are kept.
    rows: why === undefined ? [...present].flatMap((id) => rows.get(id) ?? []) : [...rows.values()],
    isProven: why === undefined,
    ...(why !== undefined && { note: why }),
  };
}

/**
 * If the order is kept, the other end of the list would show links that a limit cuts off. If not, every pass ends at the same limit: a
 * round number of links is suspicious, and so are links after empty pages.
 */
async function cutFault(ask: AskPage, [first, second]: readonly Pass[]): Promise<string | undefined> {
  const [order, back] = [first?.pages.flat() ?? [], second?.pages.flat() ?? []];
  if (!second || second.pages.length < 2 || back.indexOf(order[0] ?? '') > back.length / 2) return undefined;
  if (order.length % LIMIT === 0) return `the list ends after exactly ${order.length} links, which may be a limit`;
  const { plan, end } = second;
  for (let ahead = 2; ahead <= end + MOST_EMPTY_PAGES; ahead *= 2) {
    const { rows } = await ask({ ...plan, page: end + ahead }).catch(emptyIfRefused);
    if (rows.some(({ id }) => !second.ids.has(id))) return `pages after an empty one show more links: ${end + ahead}`;
  }
  return undefined;
}

/** Uses the actual page size: a service may cap it. A list of one page is cut in two unless its end was seen. */
function planOf(i: number, [first]: readonly Pass[]): PassPlan {
  const sortOrder = i === 1 ? 'desc' : 'asc';
  if (!first) return { pageSize: LARGEST, sortOrder };
  const fullest = Math.max(1, ...first.pages.map((ids) => ids.length));
  const isOnePage = first.pages.length < 2;
  const most = isOnePage ? (first.isEndSeen ? LARGEST : Math.ceil(fullest / 2)) : Math.min(LARGEST, fullest);
  return { pageSize: Math.max(1, Math.floor(most * (SHARES[i] ?? 1))), sortOrder };
}
