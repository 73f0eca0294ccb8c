import { type Instant, toIso } from '../model/instant.ts';
import type { PageFetcher } from './pages/page-fetcher.ts';
import { type Step, stepAt, stepEndingAt } from './pages/page-steps.ts';
import type { PageResult, Rejection } from './pages/received.ts';
import type { PageQuery } from './proof/answer.ts';

/** A page that fails although the service responds. */
export interface FailedPage {
  start: Instant;
  end?: Instant | undefined;
  step: Step;
  error: Error;
}

/** The result: the gap is closed by smaller pages or around a row that was set aside, or reading is stuck. */
export type AfterFailure =
  | { kind: 'shown'; setAside: readonly Rejection[] /** The page to walk on from. */; last?: PageResult; low?: number }
  | { kind: 'stuck'; reason: string };

/** Each unreadable row costs all retries twice; more adjacent ones than this have another cause. */
const MOST_ADJACENT = 5;
/** Rows to read after an unreadable row, so that the chain continues without hitting it again. */
const ROWS_BEHIND = 12;

/**
 * Finds by bisection how much of a page is readable, and reads that. If not even the next row can be read together with known rows, tries
 * it alone; if it fails there too, sets it aside after reading its neighbours on both sides.
 */
export async function* getPastFailure(
  fetcher: PageFetcher,
  at: Instant,
  failed: FailedPage,
): AsyncGenerator<PageResult, AfterFailure> {
  const { evidence, profile } = fetcher;
  const { start, end, step, error } = failed;
  const isClosed = (): boolean => evidence.through(at) !== undefined;
  await fetcher.assertThere();
  const attempt = (wanted: Pick<Step, 'page' | 'limit'>, once = false): Promise<PageResult | undefined> =>
    fetcher.attempt({ order: 'asc', start, end, step: wanted }, { once });
  const stuck = (reason: string): AfterFailure =>
    isClosed() ? { kind: 'shown', setAside: [] } : { kind: 'stuck', reason };

  const again = await attempt(step, true);
  if (again) {
    yield again;
    return stuck(error.message);
  }
  // If a row that was shown before fails there as well, the page number is at fault and no row is.
  if (step.offset > 0 && !(await attempt(stepAt(step.offset - 1, 1)))) return stuck(error.message);
  let [place, longest, isEnd] = [step.offset, 0, false];
  for (let limit = Math.max(1, step.limit >> 1); place < step.end && !isEnd; ) {
    const part = stepAt(place, Math.min(limit, step.end - place));
    const page = await attempt(part, part.limit > 1);
    if (page) {
      yield page;
      longest = Math.max(longest, part.limit);
      place = part.end;
      isEnd = page.count < part.limit;
    } else if (part.limit === 1) break;
    else limit = part.limit >> 1;
  }
  if (place >= step.end || isEnd) {
    // Every row was readable in smaller pages: the page was only too large.
    profile.pageRows = Math.max(1, Math.min(profile.pageRows, longest));
    return stuck(error.message);
  }
  const past = place === 0 ? undefined : yield* tryAround(fetcher, failed, place);
  return past ? { kind: 'shown', ...past } : stuck(`a row that fails by itself: ${error.message}`);
}

async function* tryAround(
  fetcher: PageFetcher,
  { start, end, error }: FailedPage,
  place: number,
): AsyncGenerator<PageResult, { setAside: Rejection[]; last: PageResult; low: number } | undefined> {
  const ask = (step: Pick<Step, 'page' | 'limit'>): Promise<PageResult | undefined> =>
    fetcher.attempt({ order: 'asc', start, end, step });
  const single = (position: number): Step => stepAt(position, 1);
  let next = place + 1;
  let right: PageResult | undefined;
  for (; next <= place + MOST_ADJACENT; next++) {
    right = await ask(single(next));
    if (right) break;
  }
  const left = await ask(single(place - 1));
  const beforeStep = stepEndingAt(place, fetcher.mostRows);
  const before = await ask(beforeStep);
  if (!right || !left || !before) return undefined;
  yield before;
  const behind: PageResult[] = [];
  for (let at = next; at < next + ROWS_BEHIND; ) {
    const page = await longestFrom(ask, at, fetcher.mostRows);
    if (!page || page.count === 0) break;
    yield page;
    behind.push(page);
    at = page.query.page * page.query.limit;
    if (page.count < page.query.limit) break;
  }
  const [first] = behind;
  if (!first) return undefined;
  const failures = async (): Promise<PageQuery[]> => {
    const queries: PageQuery[] = [];
    for (let position = place; position < next; position++) {
      const step = single(position);
      if (await ask(step)) break;
      queries.push({ ...before.query, page: step.page, limit: 1 });
    }
    return queries;
  };
  const once = await failures();
  const beforeAgain = await ask(beforeStep);
  const behindAgain: PageResult[] = [];
  for (const { query } of behind) {
    const page = await ask(query);
    if (page) behindAgain.push(page);
  }
  const twice = await failures();
  await fetcher.assertThere();
  if (!beforeAgain) return undefined;
  const isProven = fetcher.evidence.admitUnreadable({
    before: [before, beforeAgain],
    adjacent: [left, right],
    failed: [once, twice],
    behind,
    behindAgain,
  });
  if (!isProven) return undefined;
  const edge = left.rows[0]?.at ?? start;
  const setAside = Array.from({ length: next - place }, (_, i) => reject(edge, error.message, i));
  return { setAside, last: behind.at(-1) ?? first, low: next };
}

/** The longest page that starts at a position and does not fail. */
async function longestFrom(
  ask: (step: Step) => Promise<PageResult | undefined>,
  position: number,
  most: number,
): Promise<PageResult | undefined> {
  for (let limit = most; limit > 0; ) {
    const step = stepAt(position, limit);
    const page = await ask(step);
    if (page) return page;
    limit = step.limit >> 1;
  }
  return undefined;
}

/** The row itself was never seen: the entry records its position. The same position makes the same entry next time. */
const reject = (after: Instant, reason: string, index: number): Rejection => ({
  record: {
    unreadable: 'the service fails on every page that holds this row, alone or with others',
    after: toIso(after),
    ...(index > 0 && { index }),
  },
  reason,
});
