import type { Instant } from '../../model/instant.ts';
import { HOUR_MS } from '../../model/window.ts';
import type { PageFetcher } from '../pages/page-fetcher.ts';
import { firstStep, MOST_PAGES } from '../pages/page-steps.ts';
import type { PageRequest } from '../pages/question.ts';
import { unlessRefused } from '../pages/range-limits.ts';
import { type PageResult, sortedRows } from '../pages/received.ts';
import { SHOWN_MS, WIDENED_MS } from '../proof/answer.ts';
import { NARROW_MS, type Side, type Span } from '../proof/cover.ts';

const SHORT_MS = NARROW_MS - 2;
/** Shorter near the present, because time passes while a slow service answers. */
const LATEST_MS = NARROW_MS / 2;
/** Services round ends down: a question that must show a row ends this far after it, if it is long enough. */
const PAD_MS = 26 * HOUR_MS;
/** The part of a page that the compared rows may fill. */
const PART_COMPARED = 0.9;

/**
 * Reads a time in which no row has shown, piece by piece from one side, because services truncate long ranges silently. Stops if a row
 * shows or a piece fails. The evidence decides whether the silence is covered.
 */
export async function* coverSilence(fetcher: PageFetcher, silence: Span, side: Side): AsyncGenerator<PageResult, void> {
  const { evidence, profile } = fetcher;
  const limited = profile.mostRangeMs;
  // Time that other questions covered need not be asked for again, except at the far side.
  const covered =
    limited === undefined ? Math.min(evidence.coveredUntil(silence), silence.to - LATEST_MS) : silence.from;
  let at = side === 'from' ? Math.max(silence.from, covered) : silence.to;
  for (
    let isFirst = at === silence.from || side === 'to';
    side === 'from' ? at < silence.to : at > silence.from;
    isFirst = false
  ) {
    const longest = Math.floor(
      Math.min(evidence.longestQuestion(silence, at, side), limited ?? Number.POSITIVE_INFINITY),
    );
    let piece = side === 'from' ? forward(at, longest) : backward(at, longest, isFirst);
    // The piece next to the row uses another page size than the long question did.
    const limit = isFirst ? otherLimit(profile.pageRows) : profile.pageRows;
    const request: PageRequest = { order: 'asc', ...piece, step: firstStep(limit) };
    let page = await fetcher.attempt(request).catch(unlessRefused);
    // The row next to the silence should show: services sometimes answer `[]` by mistake, and shift ends.
    if (isFirst && page?.count === 0 && isKnownIn(piece)) {
      if (side === 'to') piece = backward(at, longest, isFirst, false);
      page = await fetcher.attempt({ ...request, ...piece }).catch(unlessRefused);
    }
    if (!page || page.admission.kind === 'unordered') return;
    yield page;
    const rows = sortedRows(page);
    if (rows.some((row) => row.at > silence.from && row.at < silence.to)) return;
    if (side === 'from' && rows.length > 0 && page.count * 2 > limit) {
      const isShown = yield* showsBehind(fetcher, silence, piece, page);
      if (isShown !== false) return;
    }
    if (side === 'to' && isFirst && rows.length > 0 && isOneInstant(page) && page.count * 2 > limit) {
      // Rows of one instant may be the last as well as the first: asks separately for what lies before them.
      const older = { order: 'asc', start: piece.start, end: Math.ceil(silence.to) - 1 } as const;
      const before = await fetcher.attempt({ ...older, step: firstStep(profile.pageRows) }).catch(unlessRefused);
      if (!before) return;
      yield before;
    }
    // If no long question is possible, pieces overlap by more than the rounding of bounds, if they are long enough.
    const length = piece.end - piece.start;
    const isShortened = length < longest - 1;
    const overlap = limited === undefined || isShortened ? 0 : Math.min(WIDENED_MS, limited / 4, length / 4) + 1;
    const next = side === 'from' ? piece.end - overlap : piece.start + overlap;
    if (side === 'from' ? next <= at : next >= at) return;
    at = next;
  }
  // The far side by itself, too: the pieces overlap, so that none of them covers only that.
  const far = { start: Math.floor(silence.from) - 1, end: Math.floor(silence.from) - 1 + SHORT_MS };
  if (limited === undefined || side === 'from' || silence.to <= far.end) return;
  const page = await fetcher.attempt({ order: 'asc', ...far, step: firstStep(profile.pageRows) }).catch(unlessRefused);
  if (page) yield page;

  function isKnownIn({ start, end }: { start: Instant; end: Instant }): boolean {
    return evidence.seenAfter(start).some((at) => at < end);
  }

  /** The last piece, on the far side, is a separate short one. */
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

  /** Right after a known row, if there is one: whether that row shows tells whether ends are kept. */
  function endOf(from: Instant, to: Instant): Instant {
    const most = otherLimit(profile.pageRows) * PART_COMPARED;
    const shown = evidence.timesShown(from - 1, to).slice(0, most);
    return shown.map(evidence.ends.behindRow).findLast((end) => end !== undefined) ?? Math.ceil(to);
  }

  function backward(to: Instant, longest: number, isFirst: boolean, isOnRow = true): { start: Instant; end: Instant } {
    // Services round ends down: pad if a row must show; if none is known, no end may lie in the future. Compares as many rows as fit with
    // the long question.
    const isShown = isFirst && evidence.seenAfter(silence.to - 1).length > 0;
    const rows = Math.min(longest - (to - silence.from) - PAD_MS, otherLimit(profile.pageRows) * profile.rowGapMs);
    const pad = isShown ? Math.max(rows, Math.min(PAD_MS, Math.max(HOUR_MS, longest / 8))) : 0;
    const end = pad > 0 && isOnRow ? endOf(to, to + pad) : Math.ceil(to + pad);
    const first = Math.floor(silence.from) - 1;
    const isLast = to - first <= SHORT_MS;
    // Services round starts up, too.
    const earliest = !isLast
      ? first + (limited === undefined ? SHORT_MS - 1 : 0)
      : isFirst && pad > 0
        ? first - PAD_MS
        : first;
    return { start: Math.max(earliest, end - longest), end };
  }
}

/**
 * The same for limited ranges, where no answer shows the rows on both sides: reads from the row before it in pieces as long as possible,
 * which overlap by more than the rounding of bounds, then the far side by itself. Stops at the first row that shows.
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
    const page = await fetcher.attempt({ order: 'asc', ...piece, step: firstStep(limit) }).catch(unlessRefused);
    if (!page || page.admission.kind === 'unordered') return;
    yield page;
    const rowBetween = sortedRows(page).find((row) => row.at > from && row.at < to);
    if (!rowBetween && page.count * 2 > limit && (yield* showsBehind(fetcher, silence, piece, page)) !== false) return;
    if (rowBetween || piece.end >= to) last = rowBetween?.at ?? to;
    start = piece.end - overlap;
  }
  const far =
    last < to
      ? { start: Math.max(Math.floor(from), Math.floor(last) - SHORT_MS), end: Math.ceil(last) + 1 }
      : { start: Math.floor(to) - LATEST_MS, end: Math.floor(to) - LATEST_MS + Math.max(longest, LATEST_MS + 1) };
  const page = await fetcher.attempt({ order: 'asc', ...far, step: firstStep(profile.pageRows) }).catch(unlessRefused);
  if (page) yield page;
}

/**
 * Older rows fill the page: rows of one instant, or of widened bounds. Returns whether a row shows after them; undefined if that cannot be
 * read.
 */
async function* showsBehind(
  fetcher: PageFetcher,
  silence: Span,
  piece: { start: Instant; end: Instant },
  fullPage: PageResult,
): AsyncGenerator<PageResult, boolean | undefined> {
  const step = firstStep(fullPage.query.limit);
  const start = Math.floor(silence.from) + SHOWN_MS;
  const behind: PageRequest = { order: 'asc', start, end: Math.max(start, piece.end), step };
  const newestFirst: PageRequest = { order: 'desc', ...piece, step };
  for (const request of isOneInstant(fullPage) ? [behind, newestFirst] : [newestFirst]) {
    const page = await fetcher.attempt(request).catch(unlessRefused);
    if (!page) return undefined;
    yield page;
    if (sortedRows(page).some((row) => row.at > silence.from && row.at < silence.to)) return true;
    if (page.count === 0) return false;
    // A later page shows the order of the rows of one instant.
    if (request.order === 'desc' && isOneInstant(page)) yield* showsOlder(fetcher, page);
  }
  return false;
}

const isOneInstant = (page: PageResult): boolean => sortedRows(page)[0]?.at === sortedRows(page).at(-1)?.at;

/** Whether the pages after the first one, which all hold one instant, reach rows that are older. */
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
    // A page that is not full is the last; one without new rows repeats the others.
    if (page.count < query.limit || page.rows.every(({ id }) => seen.has(id))) return false;
    for (const { id } of page.rows) seen.add(id);
  }
  return false;
}

/** A page size so different that no shift of a few rows makes a page begin at the same row. */
export const otherLimit = (rows: number): number => (rows > 1 ? rows >> 1 : 2);
