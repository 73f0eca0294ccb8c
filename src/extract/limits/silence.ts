import { StopStream } from '../../model/errors.ts';
import type { Instant } from '../../model/instant.ts';
import { HOUR_MS } from '../../model/window.ts';
import type { PageFetcher } from '../pages/page-fetcher.ts';
import { firstStep, MOST_PAGES } from '../pages/page-steps.ts';
import type { PageRequest } from '../pages/question.ts';
import { type PageResult, sortedRows } from '../pages/received.ts';
import { SHOWN_MS, WIDENED_MS } from '../proof/answer.ts';
import { NARROW_MS, type Side, type Span } from '../proof/cover.ts';

const SHORT_MS = NARROW_MS - 2;
/** At the present less than that: time goes on while a slow service answers. */
const LATEST_MS = NARROW_MS / 2;
/** Ends get rounded down: a question that is to show a row ends so far behind it, if it is long enough for that. */
const PAD_MS = 26 * HOUR_MS;
/** Such a page has room for what it shows. */
const PART_COMPARED = 0.9;

/**
 * Asks for a time in which nothing was shown so far, piece by piece from one of its sides on: long ranges are cut without a word. Ends where
 * something shows, or a piece cannot be had. Whether it is covered is for the evidence to say.
 */
export async function* coverSilence(fetcher: PageFetcher, silence: Span, side: Side): AsyncGenerator<PageResult, void> {
  const { evidence, profile } = fetcher;
  const limited = profile.mostRangeMs;
  // What was covered by the way need not be asked for again, but for the far side.
  const covered =
    limited === undefined ? Math.min(evidence.coveredUntil(silence), silence.to - LATEST_MS) : silence.from;
  let at = side === 'from' ? Math.max(silence.from, covered) : silence.to;
  for (
    let isFirst = at === silence.from || side === 'to';
    side === 'from' ? at < silence.to : at > silence.from;
    isFirst = false
  ) {
    const longest = Math.floor(Math.min(evidence.longestLook(silence, at, side), limited ?? Number.POSITIVE_INFINITY));
    let piece = side === 'from' ? forward(at, longest) : backward(at, longest, isFirst);
    // The one beside the row shows it on another page than the long question did.
    const limit = isFirst ? otherLimit(profile.pageRows) : profile.pageRows;
    const request: PageRequest = { order: 'asc', ...piece, step: firstStep(limit) };
    let page = await attempt(fetcher, request);
    // The row beside the silence should show: `[]` comes by chance, and ends are shifted.
    if (isFirst && page?.count === 0 && isKnownIn(piece)) {
      if (side === 'to') piece = backward(at, longest, isFirst, false);
      page = await attempt(fetcher, { ...request, ...piece });
    }
    if (!page || page.admission.kind === 'unordered') return;
    yield page;
    const rows = sortedRows(page);
    if (rows.some((row) => row.at > silence.from && row.at < silence.to)) return;
    if (side === 'from' && rows.length > 0 && page.count * 2 > limit) {
      const isShown = yield* behindCrowd(fetcher, silence, piece, page);
      if (isShown !== false) return;
    }
    if (side === 'to' && isFirst && rows.length > 0 && isOneInstant(page) && page.count * 2 > limit) {
      // The rows of one instant may be the last as well as the first: what lies before them, by itself.
      const before = await attempt(fetcher, {
        order: 'asc',
        start: piece.start,
        end: Math.ceil(silence.to) - 1,
        step: firstStep(profile.pageRows),
      });
      if (!before) return;
      yield before;
    }
    // Where no long question can be asked, pieces overlap further than bounds are rounded, if they are long enough.
    const length = piece.end - piece.start;
    const isShortened = length < longest - 1;
    const overlap = limited === undefined || isShortened ? 0 : Math.min(WIDENED_MS, limited / 4, length / 4) + 1;
    const next = side === 'from' ? piece.end - overlap : piece.start + overlap;
    if (side === 'from' ? next <= at : next >= at) return;
    at = next;
  }
  // The far side by itself, too: the pieces overlap, so that none of them asks for nothing else.
  const far = { start: Math.floor(silence.from) - 1, end: Math.floor(silence.from) - 1 + SHORT_MS };
  if (limited === undefined || side === 'from' || silence.to <= far.end) return;
  const page = await attempt(fetcher, { order: 'asc', ...far, step: firstStep(profile.pageRows) });
  if (page) yield page;

  function isKnownIn({ start, end }: { start: Instant; end: Instant }): boolean {
    return evidence.seenAfter(start).some((at) => at < end);
  }

  /** The last piece, on the far side, is a short one by itself. */
  function forward(from: Instant, longest: number): { start: Instant; end: Instant } {
    const start = Math.floor(from) - 1;
    const isLast = silence.to - start <= LATEST_MS + 2;
    return {
      start,
      end: isLast
        ? Math.max(start + longest, Math.ceil(silence.to))
        : Math.min(start + longest, silence.to - LATEST_MS),
    };
  }

  /** Right behind a row that is known, if there is one: whether it shows says whether ends are kept. */
  function endOf(from: Instant, to: Instant): Instant {
    const most = otherLimit(profile.pageRows) * PART_COMPARED;
    const shown = evidence.timesShown(from - 1, to).slice(0, most);
    return shown.map(evidence.ends.behindRow).findLast((end) => end !== undefined) ?? Math.ceil(to);
  }

  function backward(to: Instant, longest: number, isFirst: boolean, isOnRow = true): { start: Instant; end: Instant } {
    // Ends get rounded down, where a row is to show; where none is known, no end lies in the future. As many rows as fit are compared with the long question.
    const isShown = isFirst && evidence.seenAfter(silence.to - 1).length > 0;
    const rows = Math.min(longest - (to - silence.from) - PAD_MS, otherLimit(profile.pageRows) * profile.rowGapMs);
    const pad = isShown ? Math.max(rows, Math.min(PAD_MS, Math.max(HOUR_MS, longest / 8))) : 0;
    const end = pad > 0 && isOnRow ? endOf(to, to + pad) : Math.ceil(to + pad);
    const first = Math.floor(silence.from) - 1;
    const isLast = to - first <= SHORT_MS;
    // Starts get rounded up, too.
    const earliest = !isLast
      ? first + (limited === undefined ? SHORT_MS - 1 : 0)
      : isFirst && pad > 0
        ? first - PAD_MS
        : first;
    return { start: Math.max(earliest, end - longest), end };
  }
}

/**
 * The same where ranges are limited, so that no answer shows the rows on both sides: from the row before it on, in pieces as long as they can be,
 * which overlap further than bounds are rounded, and the far side by itself. Ends with the first row that shows.
 */
export async function* coverLimited(fetcher: PageFetcher, silence: Span): AsyncGenerator<PageResult, void> {
  const { profile } = fetcher;
  const { from, to } = silence;
  const longest = Math.floor(profile.mostRangeMs ?? to - from);
  const overlap = Math.min(WIDENED_MS, longest / 4) + 1;
  let limit = otherLimit(profile.pageRows);
  let last: Instant | undefined;
  for (let start = Math.floor(from) - 1; last === undefined; limit = profile.pageRows) {
    const piece = { start, end: Math.min(start + longest, Math.ceil(to)) };
    const page = await attempt(fetcher, { order: 'asc', ...piece, step: firstStep(limit) });
    if (!page || page.admission.kind === 'unordered') return;
    yield page;
    const inside = sortedRows(page).find((row) => row.at > from && row.at < to);
    if (!inside && page.count * 2 > limit && (yield* behindCrowd(fetcher, silence, piece, page)) !== false) return;
    if (inside || piece.end >= to) last = inside?.at ?? to;
    start = piece.end - overlap;
  }
  const far =
    last < to
      ? { start: Math.max(Math.floor(from), Math.floor(last) - SHORT_MS), end: Math.ceil(last) + 1 }
      : { start: Math.floor(to) - LATEST_MS, end: Math.floor(to) - LATEST_MS + Math.max(longest, LATEST_MS + 1) };
  const page = await attempt(fetcher, { order: 'asc', ...far, step: firstStep(profile.pageRows) });
  if (page) yield page;
}

/**
 * Older rows fill the page: those of one instant, or bounds are widened. Returns whether something shows behind them; undefined where that
 * cannot be had.
 */
async function* behindCrowd(
  fetcher: PageFetcher,
  silence: Span,
  piece: { start: Instant; end: Instant },
  crowd: PageResult,
): AsyncGenerator<PageResult, boolean | undefined> {
  const step = firstStep(crowd.query.limit);
  const start = Math.floor(silence.from) + SHOWN_MS;
  const behind: PageRequest = { order: 'asc', start, end: Math.max(start, piece.end), step };
  const newestFirst: PageRequest = { order: 'desc', ...piece, step };
  for (const request of isOneInstant(crowd) ? [behind, newestFirst] : [newestFirst]) {
    const page = await attempt(fetcher, request);
    if (!page) return undefined;
    yield page;
    if (sortedRows(page).some((row) => row.at > silence.from && row.at < silence.to)) return true;
    if (page.count === 0) return false;
    // A later page shows in which order the rows of one instant come.
    if (request.order === 'desc' && isOneInstant(page)) yield* showsOlder(fetcher, page);
  }
  return false;
}

const isOneInstant = (page: PageResult): boolean => sortedRows(page)[0]?.at === sortedRows(page).at(-1)?.at;

/** Whether the pages behind the first one, which are full of one instant, come to rows that are older. */
export async function* showsOlder(fetcher: PageFetcher, first: PageResult): AsyncGenerator<PageResult, boolean> {
  const { query, rows } = first;
  const newest = sortedRows(first).at(-1)?.at ?? Number.NEGATIVE_INFINITY;
  const seen = new Set(rows.map(({ id }) => id));
  for (let number = 2; number <= MOST_PAGES && !fetcher.profile.ignoresPage; number++) {
    const step = { page: number, limit: query.limit };
    const page = await fetcher.attempt({ order: 'desc', start: query.start, end: query.end, step });
    if (!page) return false;
    yield page;
    const oldest = sortedRows(page)[0]?.at;
    if (oldest === undefined || oldest < newest) return oldest !== undefined;
    // A page that is not full is the last, and one that shows nothing new repeats the others.
    if (page.count < query.limit || page.rows.every(({ id }) => seen.has(id))) return false;
    for (const { id } of page.rows) seen.add(id);
  }
  return false;
}

/** Such another page size that no shift of a few rows makes one page begin where the other does. */
export const otherLimit = (rows: number): number => (rows > 1 ? rows >> 1 : 2);

/** A piece can be refused by itself: by what the plan retains, or because the service is younger. */
async function attempt(fetcher: PageFetcher, request: PageRequest): Promise<PageResult | undefined> {
  try {
    return await fetcher.attempt(request);
  } catch (error) {
    // Recovery: others were answered a moment ago, so it is this one that is refused, not the stream.
    if (error instanceof StopStream) return undefined;
    throw error;
  }
}
