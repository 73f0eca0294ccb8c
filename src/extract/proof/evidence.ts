import type { Instant } from '../../model/instant.ts';
import { type Interval, inOrder, type Observation, provenBy, type Stamped, WIDENED_MS } from './answer.ts';
import { allTiesSeen, aroundUnreadable, type Count, type Unreadable } from './counting.ts';
import {
  APART_MS,
  coveredUntil,
  hasRoom,
  isCovered,
  isGone,
  isInstantSeen,
  isLong,
  isOneInstant,
  isRefuted,
  isSeenFirst,
  isSeenNewest,
  isSilent,
  type Look,
  longestLook,
  lookOf,
  QUIET_MS,
  reachesNow,
  type Side,
  type Span,
  tellsOrder,
  widestPair,
} from './cover.ts';
import { Doubts } from './doubts.ts';
import { Ends } from './ends.ts';
import { CLOSED_MS, withInstant, withInterval } from './intervals.ts';
import type { Admission, Prior } from './prior.ts';
import { SeenRows } from './seen-rows.ts';
import { SeenTime } from './seen-time.ts';

const MOST_LOOKS = 200;

/** What the answers of one run have shown, as intervals of time and a few rows at their edges. An answer that breaks a rule is evidence of nothing. */
export class Evidence extends SeenTime {
  readonly #known: Prior;
  readonly #counts = new Map<Instant, Count[]>();
  #looks: Look[] = [];
  /** The longest range that an answer has filled with rows. */
  #seenMs = 0;
  /** The service refuses longer ranges. */
  #mostRangeMs = Number.POSITIVE_INFINITY;
  #doubts = new Doubts();
  /** Until when short questions have shown nothing newer than the newest row. */
  quietThrough: Instant | undefined;
  /** Whether answers have shown which row is the newest; and also that nothing came since then, so where everything ends. */
  knowsNewest = false;
  knowsEnd = false;
  /** Two answers for the same time have shown different rows: nothing that this run reads is proven. */
  isContradicted = false;
  readonly ends: Ends;
  /** Until when the newest rows are known to show: where ends may be shifted back or rounded down, the latest do not. */
  shownThrough = Number.POSITIVE_INFINITY;
  /** Nothing behind this can be proven by the answers so far. */
  settledThrough = Number.POSITIVE_INFINITY;

  constructor(known: Prior, rows = new SeenRows(known.settleMs), ends = new Ends(known)) {
    super(rows, known.newestSeen);
    this.ends = ends;
    this.#known = known;
    this.quietThrough = known.quietThrough;
  }

  /** A copy to go on from, for a reading that delivers its rows by itself. */
  fork(): Evidence {
    const copy = new Evidence(this.#known, this.rows.fork(), this.ends);
    copy.newestSeen = this.newestSeen;
    copy.intervals = [...this.intervals];
    copy.#looks = [...this.#looks];
    copy.#seenMs = this.#seenMs;
    copy.#mostRangeMs = this.#mostRangeMs;
    copy.#doubts = this.#doubts.fork();
    const { quietThrough, knowsNewest, knowsEnd, shownThrough, settledThrough, isContradicted } = this;
    return Object.assign(copy, { quietThrough, knowsNewest, knowsEnd, shownThrough, settledThrough, isContradicted });
  }

  /** Takes an answer in, if it agrees with what is known. */
  admit(answer: Observation): Admission {
    // RULE stream. Rows of another stream: the answer is one to another question.
    if (answer.foreign) return { kind: 'foreign' };
    const sorted = inOrder(answer);
    const contradicts = this.rows.contradicts(answer, sorted ?? answer.rows, sorted && provenBy(sorted));
    this.isContradicted ||= contradicts;
    if (contradicts || this.#doubts.isBack(answer)) this.#startOver();
    if (!this.#doubts.isOrdered(answer, sorted)) {
      this.rows.rememberUnordered(answer.rows);
      return { kind: 'unordered' };
    }
    const between = provenBy(sorted, answer.query.start);
    const missing = between ? this.rows.missingFrom(answer, sorted, between) : [];
    if (missing.length > 0) return { kind: 'contradicts', missing };
    if (between) this.#add(between, answer);
    this.rows.remember(answer, sorted);
    const past = sorted.findLast(({ at }) => at <= answer.answeredAt);
    if (past && past.at > (this.newestSeen ?? Number.NEGATIVE_INFINITY)) this.newestSeen = past.at;
    this.#look(answer, sorted);
    return sorted.length === 0 ? { kind: 'empty' } : { kind: 'counts', sorted };
  }

  #startOver(): void {
    this.intervals = [];
    this.#looks = [];
    this.knowsNewest = false;
    this.knowsEnd = false;
    this.#seenMs = 0;
  }

  #look(answer: Observation, sorted: readonly Stamped[]): void {
    this.#looks = this.#looks.map((look) =>
      tellsOrder(look, answer, sorted) ? { ...look, isNewestFirst: true } : look,
    );
    const { start, end, page } = answer.query;
    const look = lookOf(answer, sorted);
    if (page === 1) this.#looks = [...this.#looks, look].slice(-MOST_LOOKS);
    this.ends.notice(look, (after, before) => this.rows.has(after, before));
    const within = sorted.filter(({ at }) => at >= start && at <= end);
    this.#seenMs = Math.max(this.#seenMs, (within.at(-1)?.at ?? 0) - (within[0]?.at ?? 0), widestPair(this.#looks));
    this.admitEnd();
  }

  /** Where everything ends, by what is known of ends now. */
  admitEnd(): void {
    const candidates = this.#looks.filter((each) => this.#isNewest(each));
    this.knowsNewest = candidates.length > 0;
    const quiet = candidates.filter((each) => this.#isSilentSince(each));
    for (const candidate of quiet) this.#addEnd(candidate);
    const isSure = quiet.some((each) => this.ends.isPresent(each, this.#isDoubtful(each)));
    const shown = quiet.map((each) => Math.max(this.#reachOf(each), each.newest?.at ?? 0));
    if (quiet.length > 0) this.shownThrough = isSure ? Number.POSITIVE_INFINITY : Math.max(...shown);
  }

  /**
   * RULE end. The newest rows first, asked for up to the present and beyond: nothing is newer than its first row, where no newer row is known and the time
   * since then is covered. Unless ends are known to be kept, that says nothing of the latest time. On a stream that was never proven, or where
   * a row that is known does not show, another question shows that row as the newest, too.
   */
  #isNewest(candidate: Look): boolean {
    const { newest } = candidate;
    const newestHere = Math.max(...this.#looks.map((look) => look.newest?.at ?? Number.NEGATIVE_INFINITY));
    if (candidate.query.order !== 'desc' || !newest || newest.at < newestHere || !reachesNow(candidate)) return false;
    const newer = this.newerSeen(newest.at);
    if (newer !== undefined && !isGone(this.#looks, newer)) return false;
    return !this.#isDoubtful(candidate) || isSeenNewest(candidate, this.#looks);
  }

  #isDoubtful = (candidate: Look): boolean =>
    this.isNew ||
    (candidate.newest && this.newerSeen(candidate.newest.at)) !== undefined ||
    (isOneInstant(candidate) && !hasRoom(candidate));

  /** Ends that were kept in an earlier run may be cut now: then a row that is known does not show. */
  #reachOf = (look: Look): Instant => this.ends.reachOf(look, this.#isDoubtful(look));

  #isSilentSince({ newest, answeredAt }: Look): boolean {
    const silence = this.silenceSince(newest?.at ?? answeredAt, answeredAt);
    return silence.to - silence.from <= QUIET_MS || isCovered(this.#looks, silence, this.#seenMs);
  }

  /** What has to be covered since the newest row. */
  silenceSince(newest: Instant, to: Instant): Span {
    return { from: Math.min(to, Math.max(newest, this.isNew ? newest : (this.quietThrough ?? newest))), to };
  }

  #addEnd(candidate: Look): void {
    const newest = candidate.newest?.at ?? Number.POSITIVE_INFINITY;
    const silence = this.silenceSince(newest, candidate.answeredAt);
    const before = this.#reachOf(candidate);
    if (isCovered(this.#looks, silence, this.#seenMs))
      this.quietThrough = Math.max(this.quietThrough ?? newest, Math.min(before, candidate.answeredAt));
    this.knowsEnd = true;
    this.#doubts.takeForGone(this.newerSeen(newest));
    this.#add({ after: candidate.first?.at ?? newest, before }, candidate);
    this.admitInstant(candidate.first?.at);
  }

  /**
   * RULE beginning. The oldest rows first, asked for from well before an instant: nothing lies between that instant and its first row, where the time
   * between them is covered and a short question shows that row first, too.
   */
  admitBeginning(edge: Instant): boolean {
    const long = this.#longFrom(edge).find((look) => {
      const to = look.first?.at ?? edge;
      const silence = { from: Math.min(edge, to - 1), to };
      const isFirst = isSeenFirst(look, this.#looks, longestLook(silence, this.#seenMs, 0));
      return isFirst && isCovered(this.#looks, silence, this.#seenMs, 'to', this.#overlap(look));
    });
    if (!long?.first) return false;
    const { at } = long.first;
    // Oldest first, the rows of such a page go on from there.
    const pages = this.#looks.filter(({ query, first }) => query.order === 'asc' && first?.at === at);
    const before = Math.max(at, ...pages.map(({ newest }) => newest?.at ?? at));
    this.#add({ after: edge - CLOSED_MS, before }, long);
    this.admitInstant(at);
    return this.around(edge) !== undefined;
  }

  /** As RULE ties: the rows of an instant beside a silence are known where several questions with room left show the same ones. */
  admitInstant(at: Instant | undefined): void {
    const isBeside = this.intervals.some(({ after, before }) => after === at || before === at);
    if (at !== undefined && isBeside && isInstantSeen(this.#looks, at))
      this.intervals = withInstant(this.intervals, at);
  }

  /** The first row behind an instant, as a long question has shown it: history may begin there. */
  firstBehind = (edge: Instant): Instant | undefined => this.#longFrom(edge)[0]?.first?.at;

  #longFrom(edge: Instant): Look[] {
    const founded = this.#known.founded ?? Number.NEGATIVE_INFINITY;
    return this.#looks.filter((look) => {
      const { query, first } = look;
      if (!first || first.at < edge || (query.order === 'desc' && !hasRoom(look))) return false;
      if (query.start > edge - APART_MS && query.start > founded && !this.#isAsLongAsCanBe(look)) return false;
      // A row that is known in its range, and that it does not show: neither does it show what else is there.
      return !this.rows.has(Math.min(edge - CLOSED_MS, query.start + WIDENED_MS), first.at);
    });
  }

  /**
   * As RULE cover: between two rows that no answer can show together, because the service refuses long ranges, or behind the last row: short questions that
   * overlap show nothing.
   */
  admitSilence(from: Instant, to = Number.POSITIVE_INFINITY): boolean {
    const last = this.#looks.at(-1);
    if (!Number.isFinite(this.#mostRangeMs) || !last || this.rows.has(from, to)) return false;
    const isEnd = to === Number.POSITIVE_INFINITY;
    const silence = { from, to: isEnd ? last.answeredAt : to };
    const telling = this.#looks.filter((look) => !isRefuted(look, (after, before) => this.rows.has(after, before)));
    if (!isSilent(telling, silence, this.#mostRangeMs, isEnd)) return false;
    if (isEnd && !telling.some((look) => this.ends.isPresent(look))) return false;
    if (isEnd) this.knowsEnd = true;
    this.#add({ after: from, before: to }, last);
    return true;
  }

  /** The service refuses longer ranges than this, so that no longer question can be asked. */
  limitRange(ms: number): void {
    this.#mostRangeMs = Math.min(this.#mostRangeMs, ms);
    this.#seenMs = Math.min(this.#seenMs, ms);
  }

  #isAsLongAsCanBe = ({ query: { start, end } }: Look): boolean => end - start >= this.#mostRangeMs * 0.9;
  #overlap = (long: Look): number => (this.#isAsLongAsCanBe(long) ? Math.min(WIDENED_MS, this.#mostRangeMs / 4) : 0);

  /** How much of a silence short questions cover by now, from the row before it on. */
  coveredUntil = (silence: Span): Instant => coveredUntil(this.#looks, silence, this.#seenMs);

  /** How long the next question may be that covers a silence from one of its sides. */
  longestLook = (silence: Span, at: Instant, side: Side): number =>
    longestLook(silence, this.#seenMs, side === 'from' ? at - silence.from : silence.to - at);

  /** A pass through the rows of one instant. Returns whether they are all known by now. */
  admitCount(at: Instant, count: Count): boolean {
    const passes = [...(this.#counts.get(at) ?? []), count];
    this.#counts.set(at, passes);
    const isLast = this.knowsEnd && this.intervals.at(-1)?.after === at;
    if (!allTiesSeen(passes, isLast)) return false;
    // RULE settled, for what was counted: a row of this instant may still arrive.
    if (passes.some(({ answeredAt }) => at >= answeredAt - this.#known.settleMs)) return false;
    this.#counts.delete(at);
    this.intervals = withInstant(this.intervals, at);
    return true;
  }

  /**
   * RULE nothing. No question shows a row: long ones in both orders, and short ones that cover the time; and an earlier poll was shown nothing either. An
   * empty answer proves nothing, however often it comes in one run.
   */
  admitNothing(): void {
    if (this.intervals.length > 0 || this.rows.size > 0 || this.newestSeen !== undefined) return;
    if (this.#looks.some(({ count }) => count > 0)) return;
    for (const { start, end } of this.#known.empty ?? []) {
      const isAsked = (order: 'asc' | 'desc'): boolean =>
        this.#looks.some((look) => isLong(look, order, { from: start, to: end }) || this.#isAsLongAsCanBe(look));
      if (!isAsked('asc') || !isAsked('desc') || !isCovered(this.#looks, { from: start, to: end }, 0, 'to')) continue;
      for (const look of this.#looks) this.#add({ after: start - 1, before: end }, look);
    }
  }

  admitUnreadable(tried: Unreadable): boolean {
    const interval = aroundUnreadable(tried);
    if (interval) this.#add(interval, tried.before[0]);
    return interval !== undefined;
  }

  /** RULE settled. An answer says nothing of what is younger than its own clock less the settle time: events arrive late. */
  #add({ after, before: shown }: Interval, { answeredAt }: Pick<Observation, 'answeredAt'>): void {
    const settled = answeredAt - this.#known.settleMs;
    if (shown > settled) this.settledThrough = settled;
    const before = Math.min(shown, settled);
    if (after >= before) return;
    this.intervals = withInterval(this.intervals, { after, before });
  }

  /** Whether nothing was proven before this run: what this service does with a question is not known at all. */
  get isNew(): boolean {
    return this.#known.newestSeen === undefined || !this.#known.isProven;
  }
}
