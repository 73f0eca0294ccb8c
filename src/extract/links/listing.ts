import type { Row } from '../../model/flatten.ts';
import type { Instant } from '../../model/instant.ts';
import { judge, type Verdict } from './judge.ts';
import { updatedAt } from './link-row.ts';
import { type AskPage, type Pass, type PassPlan, readPass } from './pass.ts';

/** All links of a source. */
export interface Listing {
  /** When it began, by the service's clock: every link that was there all the time since then is in it. */
  at: Instant;
  rows: readonly Row[];
  isProven: boolean;
  /** Why it is not proven. */
  note?: string;
}

/** Bounds the requests. */
const MOST_PASSES = 3;
const LARGEST = 100;
/** Later passes have smaller pages, by shares that bring no two edges together for long. */
const SHARES = [1, 0.97, 0.89] as const;

/**
 * Reads all links, in two or three passes with different page edges: see `judge`. Oldest first, and once newest first: where one end of
 * the list moves, the other does not.
 *
 * @param hadLinks Earlier listings or events showed links: then a list without any proves nothing.
 * @param onSeen Told now and then how many links there are so far.
 */
export async function listLinks(
  ask: AskPage,
  hadLinks: boolean,
  onSeen: (links: number) => void = () => {},
): Promise<Listing> {
  const rows = new Map<string, Row>();
  const take = (row: Row): void => {
    const known = rows.get(row.id);
    // Of two readings the one of the newer link; of equal ones the later, for its counters.
    if (!known || (updatedAt(row) ?? 0) >= (updatedAt(known) ?? 0)) rows.set(row.id, row);
    if (!known && rows.size % LARGEST === 0) onSeen(rows.size);
  };
  const createdAt = (id: string): Instant => rows.get(id)?.at ?? 0;
  const passes: Pass[] = [];
  let verdict: Verdict | undefined;
  for (let i = 0; i < MOST_PASSES; i++) {
    const last = passes.at(-1);
    passes.push(await readPass(ask, planOf(i, passes), last?.firstPage, take));
    if (i === 0) continue;
    verdict = judge(passes, createdAt);
    // A listing that changed too much under the first pass may have come to rest.
    if (!verdict.isProven && i > 1) verdict = either(verdict, judge(passes.slice(1), createdAt));
    if (verdict.isProven && verdict.doubtful.size === 0) break;
  }
  if (!verdict) throw new Error('there are at least two passes');
  const { present, note } = verdict;
  const isBare = present.size === 0 && hadLinks;
  const why = isBare ? 'the service shows no link at all, and there were some' : note;
  return {
    at: passes[0]?.beganAt ?? 0,
    rows: [...present].flatMap((id) => rows.get(id) ?? []),
    isProven: why === undefined,
    ...(why !== undefined && { note: why }),
  };
}

const either = (all: Verdict, last: Verdict): Verdict => (last.isProven ? last : all);

/** By the size that pages turned out to have: a service may cap it. A list of one page is cut in two unless its end was seen. */
function planOf(i: number, [first]: readonly Pass[]): PassPlan {
  const sortOrder = i === 1 ? 'desc' : 'asc';
  if (!first) return { pageSize: LARGEST, sortOrder };
  const fullest = Math.max(1, ...first.pages.map((ids) => ids.length));
  const isOnePage = first.pages.length < 2;
  const most = isOnePage ? (first.isEndSeen ? LARGEST : Math.ceil(fullest / 2)) : Math.min(LARGEST, fullest);
  return { pageSize: Math.max(1, Math.floor(most * (SHARES[i] ?? 1))), sortOrder };
}
