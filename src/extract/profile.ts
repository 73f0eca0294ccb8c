import type { Instant } from '../model/instant.ts';
import { DAY_MS, describeInstant, HOUR_MS } from '../model/window.ts';
import { inOrder, type Observation, WIDENED_MS } from './proof/answer.ts';
import type { Admission } from './proof/prior.ts';

/** Observed behaviour: hints that save requests, and for `doctor`. Only `keepsEnds`, `reachesAhead`, `quietThrough` enter proofs. */
export interface Profile {
  /** What the service does with a `start`: keeps it, widens it to whole hours or days, or ignores it. */
  granularity: 'exact' | 'hour' | 'day' | 'none';
  /** Whether an answer has shown that yet. */
  isStartSeen: boolean;
  /** When the service's days begin, in milliseconds after midnight UTC. */
  dayStartMs: number;
  /** How much earlier than a row a question must start for the row to show: the service rounds starts up. */
  startMarginMs: number;
  /** The coarsest resolution of timestamps seen, in milliseconds. */
  tickMs: number;
  /** The average distance between rows, from the last page that had several. */
  rowGapMs: number;
  /** The most rows the service could put on one page. */
  pageRows: number;
  /** The same for numbered pages read in sequence: the service silently cuts some short, so that the next page leaves a hole. */
  walkRows: number;
  /** Answers are not sorted as asked. */
  ignoresOrder: boolean;
  /** The second page repeats the first: page numbers have no effect. Seen in this run. */
  ignoresPage: boolean;
  /** Two answers for the same time show different rows. Seen in this run: nothing that this run reads is certified. */
  contradictsItself: boolean;
  /** The number of the first page; 1 by the contract. */
  firstPage: 0 | 1;
  /** Questions with an older start show nothing although there are rows. Seen in this run. */
  showsFrom: Instant | undefined;
  /** Rows since the lookback on the newest page, on a service that widens starts, where only a limit keeps that page short. */
  tailRows: number | undefined;
  /** The longest range to ask for: the service refuses longer ones, times out, or shows less. */
  mostRangeMs: number | undefined;
  /** When `mostRangeMs` was measured: the cause may have been an outage, so longer ranges are tried again later. */
  limitedAt: Instant | undefined;
  /** The service refuses an end in the future, or answers it with nothing; undefined until tried. */
  endsNow: boolean | undefined;
  /** A question that ended right after a row has shown it: the service keeps ends. */
  keepsEnds: boolean;
  /** A question with an end far in the future has shown rows that one ending now hides. */
  reachesAhead: boolean;
  /** Short questions have shown nothing newer than the newest row up to this time. */
  quietThrough: Instant | undefined;
  /** A row before the certified time: a question that starts there shows that the newest page overlaps it. */
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

/** Learns from an answer how the service treats bounds and order, and the resolution of its timestamps. */
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
  // A page that begins within the hour may also begin with its day, if nothing is older; one that begins earlier is not widened to hours.
  const isHour = early <= HOUR_MS && profile.granularity !== 'day';
  profile.granularity = early > WIDENED_MS ? 'none' : isHour ? 'hour' : 'day';
  // Days are assumed to begin at midnight UTC, or where an answer showed them to, until a row from before that shows.
  if (oldest < nextDay(profile, start) - DAY_MS) profile.dayStartMs = dayStartMs;
}

/** When the next day of this service begins after an instant. */
export function nextDay({ dayStartMs }: Profile, at: Instant): Instant {
  return Math.floor((at - dayStartMs) / DAY_MS) * DAY_MS + dayStartMs + DAY_MS;
}

/** Describes the profile for people. */
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
    profile.ignoresPage && 'ignores page numbers',
    profile.contradictsItself && 'shows different rows for the same time',
    profile.showsFrom !== undefined && `shows nothing when asked from before ${describeInstant(profile.showsFrom)}`,
  ].filter((each) => each !== false);
}

const describeMs = (ms: number): string =>
  ms >= 2 * DAY_MS ? `${Math.floor(ms / DAY_MS)} days` : `${Math.floor(ms / HOUR_MS)} hours`;
