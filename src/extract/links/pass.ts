import { RetryLater, StopStream, statusOf } from '../../model/errors.ts';
import type { Row } from '../../model/flatten.ts';
import type { Instant } from '../../model/instant.ts';

/** How a pass asks for its pages. */
export interface PassPlan {
  pageSize: number;
  sortOrder: 'asc' | 'desc';
}

/** One page of the listing, as rows. */
export interface LinkPage {
  rows: readonly Row[];
  /** What is wrong with the first record that is not a link. */
  unusable?: string;
  /** The service's clock when it answered. */
  now: Instant;
}

/** With `isTrial`, for a page that may not exist, there are no retries. */
export type AskPage = (query: PassPlan & { page: number; isTrial?: boolean }) => Promise<LinkPage>;

/** The listing as one pass through its pages showed it. */
export interface Pass {
  plan: PassPlan;
  /** By the service's clock: a younger link was created during the pass. */
  beganAt: Instant;
  /** The ids of each page that showed a new one, in order; each id once. */
  pages: readonly (readonly string[])[];
  ids: ReadonlySet<string>;
  /** The service showed that the list ends: a page after it was empty, twice. */
  isEndSeen: boolean;
  /** The first page number that was not asked for. */
  end: number;
  /** The number of the service's first page; undefined if it showed nothing. */
  firstPage: 0 | 1 | undefined;
}

/** Concurrent pages: a page takes longer than its turn in the budget. */
const AT_ONCE = 8;
/** This many pages in a row without a new link end the list. */
const PAGES_AT_END = 2;
/** A million links: a longer listing is not one, and all of it is held in memory. */
const MOST_PAGES = 10_000;

/**
 * Reads pages until two in a row bring no new link. A short page proves nothing: services cap `pageSize`. An empty one is read again: some
 * services answer `[]` now and then.
 */
export async function readPass(ask: AskPage, plan: PassPlan, first: Pass['firstPage'], take: (row: Row) => void) {
  const ids = new Set<string>();
  const pages: string[][] = [];
  let pagesWithoutNew = 0;
  let isEndSeen = false;
  let beganAt: Instant | undefined;

  const get = async (page: number, isTrial = false): Promise<LinkPage> => {
    const asked = ask({ ...plan, page, isTrial });
    const answer = await (ids.size > 0 ? asked.catch(emptyIfRefused) : asked);
    beganAt = Math.min(beganAt ?? answer.now, answer.now);
    return answer;
  };
  const show = async (page: number, answer: LinkPage): Promise<void> => {
    const { rows } = answer.rows.length === 0 && pagesWithoutNew === 0 ? await get(page) : answer;
    if (rows.length === 0) isEndSeen = true;
    const newIds = [...new Set(rows.map(({ id }) => id))].filter((id) => !ids.has(id));
    for (const row of rows) take(row);
    for (const id of newIds) ids.add(id);
    if (newIds.length > 0) pages.push(newIds);
    pagesWithoutNew = newIds.length > 0 ? 0 : pagesWithoutNew + 1;
  };

  const start = first === undefined ? await findFirst(get) : { firstPage: first, answers: [] };
  for (const { page, answer } of start.answers) await show(page, answer);
  let next = start.firstPage === undefined ? 2 : start.firstPage + start.answers.length;
  while (pagesWithoutNew < PAGES_AT_END) {
    if (next > MOST_PAGES) throw endless();
    const many = Math.max(1, Math.min(AT_ONCE, pages.length - 1));
    const numbers = Array.from({ length: many }, (_, i) => next + i);
    const answers = await Promise.all(numbers.map((page) => get(page)));
    for (const [i, answer] of answers.entries()) if (pagesWithoutNew < PAGES_AT_END) await show(next + i, answer);
    next += many;
  }
  return { plan, beganAt: beganAt ?? 0, pages, ids, isEndSeen, end: next, firstPage: start.firstPage } satisfies Pass;
}

/** Some services count from 0. Others refuse page 0, fail, show it empty, or repeat page 1. */
async function findFirst(get: (page: number, isTrial?: boolean) => Promise<LinkPage>) {
  const one = { page: 1, answer: await get(1) };
  const zero = { page: 0, answer: await get(0, true).catch(unlessRefused) };
  const known = new Set(one.answer.rows.map(({ id }) => id));
  const newIds = zero.answer?.rows.filter(({ id }) => !known.has(id)) ?? [];
  if (zero.answer && newIds.length > zero.answer.rows.length / 2)
    return { firstPage: 0 as const, answers: [{ page: 0, answer: zero.answer }, one] };
  return { firstPage: known.size > 0 ? (1 as const) : undefined, answers: [one] };
}

/**
 * Recovery: a page that does not exist is refused, or fails, and that is the answer. If the service itself failed, the next page fails too.
 */
function unlessRefused(error: unknown): undefined {
  if (!(error instanceof StopStream || error instanceof RetryLater)) throw error;
}

/** Recovery: some services refuse a page after the last one instead of showing it empty. */
export function emptyIfRefused(error: unknown): LinkPage {
  if (error instanceof StopStream && [400, 404, 416, 422].includes(statusOf(error) ?? 0))
    return { rows: [], now: Date.now() };
  throw error;
}

const endless = (): StopStream =>
  new StopStream(`the listing of links does not end: page ${MOST_PAGES} still shows new ones`, {
    kept: 'the links of the last listing',
    next: 'check the answers of GET /links; leave links out of the source until they end',
  });
