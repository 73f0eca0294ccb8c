import type { Instant } from '../model/instant.ts';
import { DAY_MS, describeInstant, HOUR_MS } from '../model/window.ts';
import { inOrder, type Observation, WIDENED_MS } from './proof/answer.ts';
import type { Admission } from './proof/prior.ts';

/** What was noticed of this server: hints that save requests and that `doctor` reports. Only `keepsEnds`, `reachesAhead` and `quietThrough` are part of a proof. */
export interface Profile {
  /** What becomes of a `start`: kept, widened to whole hours or days, or ignored. */
  granularity: 'exact' | 'hour' | 'day' | 'none';
  /** Whether that was seen yet. */
  isStartSeen: boolean;
  /** When its days begin, in milliseconds after midnight UTC. */
  dayStartMs: number;
  /** How much earlier than a row one has to ask for the row to be shown: starts get rounded up. */
  startMarginMs: number;
  /** The coarsest resolution of timestamps seen, in milliseconds. */
  tickMs: number;
  /** How far rows are apart, by the last page that had several. */
  rowGapMs: number;
  /** The most rows the service could put on one page. */
  pageRows: number;
  /** The same for pages that follow each other: some are silently cut short, so that the next one does not follow on. */
  walkRows: number;
  /** Answers come in another order than was asked for. */
  ignoresOrder: boolean;
  /** The second page shows what the first did: numbers lead nowhere. Seen in this run. */
  ignoresPage: boolean;
  /** Two answers for the same time show different rows. Seen in this run: nothing that it reads is called complete. */
  contradictsItself: boolean;
  /** The number of the first page: by the contract 1. */
  firstPage: 0 | 1;
  /** Older starts show nothing although there are rows. Seen in this run. */
  showsFrom: Instant | undefined;
  /** Rows of the newest page since the lookback, where starts are widened and only a limit keeps that page short. */
  tailRows: number | undefined;
  /** The longest range that is asked for: longer ones are refused, time out, or show less. */
  mostRangeMs: number | undefined;
  /** When that was found out: it may have been an outage, and is tried again. */
  limitedAt: Instant | undefined;
  /** An end in the future is refused, or answered with nothing; undefined until that was tried. */
  endsNow: boolean | undefined;
  /** A question that ended right behind a row has shown it: ends are kept. */
  keepsEnds: boolean;
  /** An end far ahead has shown what one at the present hides. */
  reachesAhead: boolean;
  /** Short questions have shown nothing newer than the newest row until then. */
  quietThrough: Instant | undefined;
  /** A row that lies before what is complete: asking from there shows that the newest page joins it. */
  anchorAt: Instant | undefined;
}

const QUARTER_MS = 900_000;

export const UNKNOWN_PROFILE: Omit<Profile, 'pageRows'> = {
  walkRows: Number.MAX_SAFE_INTEGER,
  granularity: 'exact',
  isStartSeen: false,
  dayStartMs: 0,
  startMarginMs: 0,
  tickMs: 1000,
  rowGapMs: 1000,
  ignoresOrder: false,
  ignoresPage: false,
  contradictsItself: false,
  firstPage: 1,
  showsFrom: undefined,
  tailRows: undefined,
  anchorAt: undefined,
  mostRangeMs: undefined,
  limitedAt: undefined,
  endsNow: undefined,
  keepsEnds: false,
  reachesAhead: false,
  quietThrough: undefined,
};

/** Learns from an answer what the server does with bounds and order, and how fine its clock is. */
export function noticeAnswer(profile: Profile, answer: Observation, admission: Admission): void {
  profile.ignoresOrder = admission.kind === 'unordered';
  const sorted = inOrder(answer) ?? [];
  const [oldest, newest] = [sorted[0]?.at, sorted.at(-1)?.at];
  if (oldest === undefined || newest === undefined) return;
  if (sorted.length > 1) profile.rowGapMs = Math.ceil((newest - oldest) / (sorted.length - 1));
  const wholeSeconds = answer.rows.filter((row) => row.at % 1000 === 0).length;
  // One row in a thousand ends in .000 by chance; a tenth of them does not.
  profile.tickMs = wholeSeconds * 10 > answer.rows.length ? 1000 : 1;
  const { start, order, page } = answer.query;
  if (order !== 'asc' || page !== 1) return;
  const early = start - oldest;
  if (early < -1000) return;
  profile.isStartSeen = true;
  if (early <= 1000) {
    profile.granularity = 'exact';
    return;
  }
  const dayStartMs = (Math.floor(oldest / QUARTER_MS) * QUARTER_MS) % DAY_MS;
  // What begins within the hour may begin with its day, too, where there is nothing older; more than an hour is no hour.
  const isHour = early <= HOUR_MS && profile.granularity !== 'day';
  profile.granularity = early > WIDENED_MS ? 'none' : isHour ? 'hour' : 'day';
  // Days are taken to begin at midnight UTC, or where they were seen to, until a row shows from before that.
  if (oldest < nextDay(profile, start) - DAY_MS) profile.dayStartMs = dayStartMs;
}

/** Where the next day of this server begins after an instant. */
export function nextDay({ dayStartMs }: Profile, at: Instant): Instant {
  return Math.floor((at - dayStartMs) / DAY_MS) * DAY_MS + dayStartMs + DAY_MS;
}

/** The same in words, for people. */
export function describeProfile(profile: Profile, mostRows: number): string[] {
  const hours = ((profile.dayStartMs / HOUR_MS + 12) % 24) - 12;
  const zone = hours === 0 ? 'UTC' : `UTC${hours > 0 ? '−' : '+'}${Math.abs(hours)}`;
  return [
    profile.granularity === 'hour' && 'widens start and end to whole hours',
    profile.granularity === 'day' && `widens start and end to whole days (${zone})`,
    profile.granularity === 'none' && 'ignores start',
    profile.startMarginMs > 0 &&
      `rounds start up (rows show only when asked for ${Math.ceil(profile.startMarginMs / 60_000)} min earlier)`,
    Math.min(profile.pageRows, profile.walkRows) < mostRows &&
      `gives at most ${Math.min(profile.pageRows, profile.walkRows)} rows a page`,
    profile.mostRangeMs !== undefined && `answers ranges of at most ${describeMs(profile.mostRangeMs)}`,
    profile.endsNow === true && 'refuses an end in the future',
    profile.ignoresOrder && 'does not sort its answers as asked',
    profile.firstPage === 0 && 'counts pages from 0',
    profile.ignoresPage && 'shows the same page whatever its number',
    profile.contradictsItself && 'shows different rows for the same time',
    profile.showsFrom !== undefined && `shows nothing when asked from before ${describeInstant(profile.showsFrom)}`,
  ].filter((each) => each !== false);
}

const describeMs = (ms: number): string =>
  ms >= 2 * DAY_MS ? `${Math.floor(ms / DAY_MS)} days` : `${Math.floor(ms / HOUR_MS)} hours`;
