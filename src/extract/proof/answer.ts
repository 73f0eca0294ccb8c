import type { Instant } from '../../model/instant.ts';

/** What was asked for: a page of the rows between two bounds, in one order. */
export interface PageQuery {
  readonly order: 'asc' | 'desc';
  readonly start: Instant;
  readonly end: Instant;
  readonly page: number;
  readonly limit: number;
}

/** A row as the proof sees it. */
export interface Stamped {
  readonly id: string;
  readonly at: Instant;
}

/** One answer of the service. */
export interface Observation {
  readonly query: PageQuery;
  /** As shown, in their order. */
  readonly rows: readonly Stamped[];
  /** Records on the page, readable or not. */
  readonly count: number;
  /** The service's clock when it answered. */
  readonly answeredAt: Instant;
}

const DAY_MS = 86_400_000;
/** A range that no service cuts short or has forgotten. */
export const NARROW_MS = 6 * 3_600_000;

/** Services widen bounds to whole days, and days begin at different times around the world. */
export const WIDENED_MS = 2 * 86_400_000;

/** Longer than any rounding of a bound: hours, days, weeks and months in any zone. */
export const APART_MS = 40 * 86_400_000;

/** Clocks differ by this much, and the one of an answer tells whole seconds only. */
const CLOCKS_MS = 60_000;

/** Times are shown in whole seconds while they are compared to the millisecond. */
export const SHOWN_MS = 1000;

/** A page needs so many rows before one of them may be out of order; more than one in fifty is not a few. */
const LEAST_ROWS_WITH_STRAY = 4;
const ROWS_A_STRAY = 50;

/**
 * RULE order. The rows of an answer that are sorted as asked, oldest first; undefined where the answer is reversed or mixed, which proves
 * nothing. A few rows whose times do not fit their places (a garbled clock: 1970, 2099) are left out: they are stored like any other and prove nothing.
 */
export function inOrder({ query, rows, answeredAt }: Omit<Observation, 'count'>): readonly Stamped[] | undefined {
  const oldestFirst = query.order === 'asc' ? rows : rows.toReversed();
  const line = longestLine(oldestFirst);
  const strays = rows.length - line.length;
  const allowed = rows.length < LEAST_ROWS_WITH_STRAY ? 0 : Math.max(1, Math.floor(rows.length / ROWS_A_STRAY));
  if (strays > allowed) return undefined;
  // With one row out of place a reversed page of ties looks nearly sorted.
  if (strays > 0 && longestLine(oldestFirst.toReversed()).length >= line.length) return undefined;
  // What lies in the future is no edge either: nothing is proven there, and a garbled time would prove all before it.
  const past = line.filter(({ at }) => at <= answeredAt + CLOCKS_MS);
  const near = withinReach(past, query);
  // A page with more rows than were asked for is not the page with that number.
  return near.length > query.limit && query.page > 1 ? undefined : near;
}

/**
 * RULE reach. Rows further outside of the asked bounds than any widening explains are no edges while others are nearer: at the edge of a page
 * a garbled time is in order too, and would prove everything up to there complete.
 */
function withinReach(line: readonly Stamped[], { start, end }: PageQuery): readonly Stamped[] {
  const near = line.filter(({ at }) => at >= start - WIDENED_MS && at <= end + WIDENED_MS);
  // A single row on one side of the question is no widening.
  const older = near.filter(({ at }) => at < start - SHOWN_MS);
  const newer = near.filter(({ at }) => at > end + SHOWN_MS);
  const strays = [older, newer].flatMap((rows) => (rows.length === 1 && near.length > 1 ? rows : []));
  if (strays.length > 0) return near.filter((row) => !strays.includes(row));
  if (near.length > 0) return near;
  // Far away on one side, a bound was ignored; on both, the times are garbled.
  const isOneSided = line.every(({ at }) => at < start) || line.every(({ at }) => at > end);
  return isOneSided ? line : [];
}

/** As many rows as possible that never go back in time. Nearly every page is in order as a whole, and is taken as it is. */
function longestLine(rows: readonly Stamped[]): readonly Stamped[] {
  if (rows.every((row, i) => i === 0 || row.at >= (rows[i - 1]?.at ?? row.at))) return rows;
  /** The row that ends the line of each length with the smallest time, and for every row the one before it in its line. */
  const ends: Stamped[] = [];
  const before = new Map<Stamped, Stamped | undefined>();
  for (const row of rows) {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle]?.at ?? 0) <= row.at) low = middle + 1;
      else high = middle;
    }
    before.set(row, ends[low - 1]);
    ends[low] = row;
  }
  const line: Stamped[] = [];
  for (let row = ends.at(-1); row; row = before.get(row)) line.push(row);
  return line.reverse();
}

/** Times strictly between two instants. */
export interface Stretch {
  readonly after: Instant;
  readonly before: Instant;
}

/**
 * RULE inside. Every row that was visible and lies strictly between the oldest and the newest row of an answer is on it. Rows that share
 * the time of an edge are proven by no answer that ends there.
 */
export function insideOf(line: readonly Stamped[]): Stretch | undefined {
  const [oldest, newest] = [line[0], line.at(-1)];
  return oldest && newest && oldest.at < newest.at ? { after: oldest.at, before: newest.at } : undefined;
}

/**
 * RULE newest. The first page, newest rows first, asked for beyond the present: nothing visible is newer than its first row. It says so only
 * where it shows a row, and where no row is known to be newer.
 */
export function newestOfAll(
  { query, answeredAt }: Observation,
  line: readonly Stamped[],
  newestKnown: Instant | undefined,
): Stretch | undefined {
  const [oldest, newest] = [line[0], line.at(-1)];
  if (query.order !== 'desc' || query.page !== 1 || query.end < answeredAt || !oldest || !newest) return undefined;
  if (newestKnown !== undefined && newestKnown > newest.at) return undefined;
  return { after: oldest.at, before: Number.POSITIVE_INFINITY };
}

/**
 * RULE newest, confirmed. Long ranges get cut short, and pages may be counted from nought: a newest row that was never seen before has to be the
 * newest of a second question too, with another limit, that begins right there. Where the end was proven before, the page shows rows that are known, and
 * that is the proof; after a long silence it stands unless a question for the latest hours shows something newer.
 */
export function confirmsNewest(claim: Observation, other: Observation, isNew: boolean, isTold = false): boolean {
  const newest = newestRow(claim);
  if (!newest || other.query.page !== 1 || other.query.end < other.answeredAt) return false;
  // Oldest first, a full page ends where it is full.
  if (other.query.order === 'asc' && other.count >= other.query.limit) return false;
  const shown = newestRow(other);
  if (isOneInstant(claim) && !isTold) {
    // In which order it came cannot be told: the other order, from right there, must show nothing newer.
    const isRightThere =
      other.query.order === 'asc' && other.query.start <= newest.at && other.query.start >= newest.at - 2 * SHOWN_MS;
    return isRightThere && haveOtherEdges(claim, other) && shown !== undefined && shown.at <= newest.at;
  }
  if (!isNew && isOfLatest(other)) return showsNothingNewer(other, newest.at);
  if (!haveOtherEdges(claim, other) || other.query.start === claim.query.start) return false;
  // Rows of one instant may stand in another order each time.
  return shown?.id === newest.id || (isTold && shown?.at === newest.at);
}

/** A later page of the same question ends with older rows: so the claim's page of one instant did come newest first. */
export function tellsOrder(claim: Observation, other: Observation): boolean {
  const { query } = other;
  const line = inOrder(other) ?? [];
  const isLater = query.order === 'desc' && query.page > 1 && query.limit === claim.query.limit;
  const isSame = isLater && query.start === claim.query.start && query.end === claim.query.end;
  return isSame && line.at(-1)?.at === newestRow(claim)?.at && insideOf(line) !== undefined;
}

/** A question for the latest hours alone: what is answered from an archive, or cut short, shows itself there. */
export const isOfLatest = ({ query, answeredAt }: Observation): boolean =>
  query.page === 1 && query.end >= answeredAt && query.start >= answeredAt - NARROW_MS && query.start <= answeredAt;

export function showsNothingNewer(answer: Observation, at: Instant): boolean {
  const shown = newestRow(answer);
  return shown === undefined ? answer.count === 0 : shown.at <= at;
}

/** Records that cannot be read are set aside wherever they show; only a page full of them might hide others. */
export const isRoomLeft = ({ rows, count, query }: Observation): boolean => rows.length === 0 && count < query.limit;

/** Whether such a confirmation is needed. */
export const needsConfirmation = (answer: Observation, isNew: boolean): boolean =>
  isNew || answer.query.start < answer.answeredAt - DAY_MS || isOneInstant(answer);

/** Pages of such different sizes that no shift of a few rows makes one begin where the other does. */
const haveOtherEdges = (a: Observation, b: Observation): boolean =>
  Math.max(a.query.limit, b.query.limit) >= 2 * Math.min(a.query.limit, b.query.limit);

const isOneInstant = ({ rows }: Observation): boolean => rows.every(({ at }) => at === rows[0]?.at);

const newestRow = (answer: Observation): Stamped | undefined => inOrder(answer)?.at(-1);

/**
 * RULE beginning. Two questions that begin well apart, with other limits, and show the same first row, and a third one that ends a day before that
 * row and shows nothing older: nothing is older, from the later start on. One question does not say so, however close its first row is: starts are
 * rounded up, and archives show themselves only to a question that ends in their time.
 */
export function beginning(one: Observation, other: Observation, before: Observation): Stretch | undefined {
  const [early, late] = one.query.start <= other.query.start ? [one, other] : [other, one];
  if (!isFirstAscending(early) || !isFirstAscending(late)) return undefined;
  if (late.query.start - early.query.start < APART_MS || !haveOtherEdges(early, late)) return undefined;
  const [first, again] = [inOrder(early), inOrder(late)];
  if (!first?.[0] || first[0].id !== again?.[0]?.id) return undefined;
  // The shorter page is how the longer one begins.
  if (first.some(({ at }, i) => i < again.length && at !== again[i]?.at)) return undefined;
  // Pages of one instant may be the end as well as the beginning, in an order that cannot be told: then nothing at all may show right before it.
  const isTold = !isOneInstant(early) || !isOneInstant(late);
  const latestEnd = isTold ? first[0].at - DAY_MS : first[0].at;
  if (before.query.end >= latestEnd || before.query.start > early.query.start) return undefined;
  // Else a widened end may show the first row again.
  const shown = inOrder(before);
  const showsNoOther =
    isFirstAscending(before) && (shown?.length === 0 ? isRoomLeft(before) : shown?.[0]?.id === first[0].id);
  if (before.count > 0 && !(isTold && showsNoOther)) return undefined;
  const newest = Math.max(...[first, again].map((line) => line.at(-1)?.at ?? Number.NEGATIVE_INFINITY));
  return { after: Math.min(first[0].at, late.query.start - 1), before: newest };
}

/** RULE founding. A service that refuses every older start has nothing older: its first page from there shows the beginning. */
export function founding(answer: Observation, founded: Instant): Stretch | undefined {
  const line = inOrder(answer);
  const [first, newest] = [line?.[0], line?.at(-1)];
  if (!isFirstAscending(answer) || answer.query.start > founded || !first || !newest) return undefined;
  // The order of a single instant cannot be told: it may be the end as well.
  if (first.at === newest.at) return undefined;
  return { after: founded - 1, before: newest.at };
}

const isFirstAscending = ({ query }: Observation): boolean => query.order === 'asc' && query.page === 1;

/** Rows can be hidden after they were counted, so that whole pages are empty: in a long window, so many are looked behind. */
const EMPTY_PAGES = 4;
const SHORT_MS = 3_600_000;

export const emptyPagesFor = ({ start, end }: Window): number => (end - start > SHORT_MS ? EMPTY_PAGES : 1);

/** A few rows, since the first may be hidden. */
export const LOOK_ROWS = 10;
/** Each look back reaches at most so many times further than the one before it, and none looks over more than this at once. */
const LOOK_RATIO = 5;
const LONGEST_LOOK_MS = 2 * DAY_MS;
/** Of a long history each look covers this part. */
const MOST_LOOKS = 10;

/**
 * Looks back from the present to an instant, piece by piece, for a few rows each: what to ask to see that nothing is there. Old starts can be
 * answered with nothing, and so can long ranges.
 */
export function looksBack(now: Instant, until: Instant): Window[] {
  const looks: Window[] = [{ start: now - NARROW_MS / 2, end: now + NARROW_MS }];
  const longest = Math.max(LONGEST_LOOK_MS, (now - until) / MOST_LOOKS);
  for (let at = now - NARROW_MS / 2; at > until; at = looks.at(-1)?.start ?? until) {
    looks.push({ start: Math.max(until, at - Math.min(longest, (now - at) * (LOOK_RATIO - 1))), end: at });
  }
  return looks;
}

/**
 * RULE nothing. Nothing is there when questions that can go wrong in different ways show no row at all, and did so at an earlier poll: the
 * newest rows first from well before it, the oldest first some pages deep, and looks back for a few rows each. Holds for what was
 * found empty then; an empty answer proves nothing, however often it comes in one run.
 */
export function nothingThere(answers: readonly Observation[], earlier: readonly Window[]): Stretch[] {
  if (answers.some(({ count }) => count > 0)) return [];
  return earlier
    .filter((window) => {
      const asked = (order: 'asc' | 'desc', page: number, apartMs: number): boolean =>
        answers.some(
          ({ query }) =>
            query.order === order &&
            query.page === page &&
            query.start <= window.start - apartMs &&
            query.end >= window.end,
        );
      const pages = Array.from({ length: emptyPagesFor(window) }, (_, i) => i + 1);
      return asked('desc', 1, APART_MS) && pages.every((page) => asked('asc', page, 1)) && isLookedAt(answers, window);
    })
    .map((window) => ({ after: window.start - 1, before: window.end }));
}

/** Whether looks for a few rows cover a window without a hole, each of them short. */
function isLookedAt(answers: readonly Observation[], window: Window): boolean {
  const looks = answers.filter(({ query }) => query.limit <= LOOK_ROWS && query.page === 1).map(({ query }) => query);
  const most = Math.max(LONGEST_LOOK_MS, (window.end - window.start) / 8, 2 * NARROW_MS);
  let at = window.end;
  for (const { start, end } of looks.sort((a, b) => b.start - a.start)) {
    if (end >= at && end - start <= most) at = Math.min(at, start);
  }
  return at <= window.start;
}

interface Window {
  readonly start: Instant;
  readonly end: Instant;
}

export const sameRows = (a: Pick<Observation, 'rows'>, b: Pick<Observation, 'rows'>): boolean =>
  a.rows.length === b.rows.length && a.rows.every(({ id }, i) => id === b.rows[i]?.id);
