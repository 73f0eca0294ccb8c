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
  longestQuestion,
  QUIET_MS,
  reachesNow,
  type ShownPage,
  type Side,
  type Span,
  shownPage,
  showsOrder,
  widestPair,
} from './cover.ts';
import { Doubts } from './doubts.ts';
import { Ends } from './ends.ts';
import { CLOSED_MS, withInstant, withInterval } from './intervals.ts';
import type { Admission, Prior } from './prior.ts';
import { SeenRows } from './seen-rows.ts';
import { SeenTime } from './seen-time.ts';

const MOST_PAGES = 200;

/** What one run's answers have shown: intervals of time and a few rows at their edges. An answer that breaks a rule is no evidence. */
export class Evidence extends SeenTime {
  readonly #known: Prior;
  readonly #counts = new Map<Instant, Count[]>();
  #pages: ShownPage[] = [];
  /** The longest range that an answer has filled with rows. */
  #seenMs = 0;
  #mostRangeMs = Number.POSITIVE_INFINITY;
  #doubts = new Doubts();
  /** Until when short questions have shown nothing newer than the newest row. */
  quietThrough: Instant | undefined;
  /** Whether answers have shown which row is the newest; and also that nothing came since, so where the stream ends. */
  knowsNewest = false;
  knowsEnd = false;
  /** Two answers for the same time have shown different rows: nothing that this run reads is proven. */
  isContradicted = false;
  readonly ends: Ends;
  /** Until when the newest rows are known to show: if ends may be shifted back or rounded down, the latest are hidden. */
  shownThrough = Number.POSITIVE_INFINITY;
  /** The answers so far prove nothing after this. */
  settledThrough = Number.POSITIVE_INFINITY;

  constructor(known: Prior, rows = new SeenRows(known.settleMs), ends = new Ends(known)) {
    super(rows, known.newestSeen);
    this.ends = ends;
    this.#known = known;
    this.quietThrough = known.quietThrough;
  }

  /** A copy to continue from, for a reading that delivers its rows by itself. */
  fork(): Evidence {
    const copy = new Evidence(this.#known, this.rows.fork(), this.ends);
    copy.newestSeen = this.newestSeen;
    copy.intervals = [...this.intervals];
    copy.#pages = [...this.#pages];
    copy.#seenMs = this.#seenMs;
    copy.#mostRangeMs = this.#mostRangeMs;
    copy.#doubts = this.#doubts.fork();
    const { quietThrough, knowsNewest, knowsEnd, shownThrough, settledThrough, isContradicted } = this;
    return Object.assign(copy, { quietThrough, knowsNewest, knowsEnd, shownThrough, settledThrough, isContradicted });
  }

  /** Admits an answer if it agrees with what is known. */
  admit(answer: Observation): Admission {
    // RULE stream. Rows of another stream: this is the answer to another question.
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
    this.#notePage(answer, sorted);
    return sorted.length === 0 ? { kind: 'empty' } : { kind: 'counts', sorted };
  }

  #startOver(): void {
    this.intervals = [];
    this.#pages = [];
    this.knowsNewest = false;
    this.knowsEnd = false;
    this.#seenMs = 0;
  }

  #notePage(answer: Observation, sorted: readonly Stamped[]): void {
    this.#pages = this.#pages.map((page) =>
      showsOrder(page, answer, sorted) ? { ...page, isNewestFirst: true } : page,
    );
    const { start, end, page } = answer.query;
    const shown = shownPage(answer, sorted);
    if (page === 1) this.#pages = [...this.#pages, shown].slice(-MOST_PAGES);
    this.ends.notice(shown, (after, before) => this.rows.has(after, before));
    const within = sorted.filter(({ at }) => at >= start && at <= end);
    this.#seenMs = Math.max(this.#seenMs, (within.at(-1)?.at ?? 0) - (within[0]?.at ?? 0), widestPair(this.#pages));
    this.admitEnd();
  }

  /** Determines where the stream ends, by what is known of ends now. */
  admitEnd(): void {
    const candidates = this.#pages.filter((each) => this.#isNewest(each));
    this.knowsNewest = candidates.length > 0;
    const quiet = candidates.filter((each) => this.#isSilentSince(each));
    for (const candidate of quiet) this.#addEnd(candidate);
    const isSure = quiet.some((each) => this.ends.isPresent(each, this.#isDoubtful(each)));
    const shown = quiet.map((each) => Math.max(this.#reachOf(each), each.newest?.at ?? 0));
    if (quiet.length > 0) this.shownThrough = isSure ? Number.POSITIVE_INFINITY : Math.max(...shown);
  }

  /**
   * RULE end. Asked newest first up to the present and beyond, nothing is newer than the first row, if no newer row is known and the time
   * since then is covered. Unless ends are known to be kept, that says nothing about the latest time. On a stream that was never proven, or
   * if a known row does not show, another question must show that row as the newest, too.
   */
  #isNewest(candidate: ShownPage): boolean {
    const { newest } = candidate;
    const newestHere = Math.max(...this.#pages.map((page) => page.newest?.at ?? Number.NEGATIVE_INFINITY));
    if (candidate.query.order !== 'desc' || !newest || newest.at < newestHere || !reachesNow(candidate)) return false;
    const newer = this.newerSeen(newest.at);
    if (newer !== undefined && !isGone(this.#pages, newer)) return false;
    return !this.#isDoubtful(candidate) || isSeenNewest(candidate, this.#pages);
  }

  #isDoubtful = (candidate: ShownPage): boolean =>
    this.isNew ||
    (candidate.newest && this.newerSeen(candidate.newest.at)) !== undefined ||
    (isOneInstant(candidate) && !hasRoom(candidate));

  /** Ends that were kept in an earlier run may be cut now: then a known row does not show. */
  #reachOf = (page: ShownPage): Instant => this.ends.reachOf(page, this.#isDoubtful(page));

  #isSilentSince({ newest, answeredAt }: ShownPage): boolean {
    const silence = this.silenceSince(newest?.at ?? answeredAt, answeredAt);
    return silence.to - silence.from <= QUIET_MS || isCovered(this.#pages, silence, this.#seenMs);
  }

  /** The time to cover since the newest row. */
  silenceSince(newest: Instant, to: Instant): Span {
    return { from: Math.min(to, Math.max(newest, this.isNew ? newest : (this.quietThrough ?? newest))), to };
  }

  #addEnd(candidate: ShownPage): void {
    const newest = candidate.newest?.at ?? Number.POSITIVE_INFINITY;
    const silence = this.silenceSince(newest, candidate.answeredAt);
    const before = this.#reachOf(candidate);
    if (isCovered(this.#pages, silence, this.#seenMs))
      this.quietThrough = Math.max(this.quietThrough ?? newest, Math.min(before, candidate.answeredAt));
    this.knowsEnd = true;
    this.#doubts.takeForGone(this.newerSeen(newest));
    this.#add({ after: candidate.first?.at ?? newest, before }, candidate);
    this.admitInstant(candidate.first?.at);
  }

  /**
   * RULE beginning. Asked oldest first from well before an instant, nothing lies between that instant and the first row, if the time
   * between them is covered and a short question shows that row first, too.
   */
  admitBeginning(edge: Instant): boolean {
    const long = this.#longFrom(edge).find((page) => {
      const to = page.first?.at ?? edge;
      const silence = { from: Math.min(edge, to - 1), to };
      const isFirst = isSeenFirst(page, this.#pages, longestQuestion(silence, this.#seenMs, 0));
      return isFirst && isCovered(this.#pages, silence, this.#seenMs, 'to', this.#overlap(page));
    });
    if (!long?.first) return false;
    const { at } = long.first;
    // Oldest first, the rows of such a page continue from there.
    const pages = this.#pages.filter(({ query, first }) => query.order === 'asc' && first?.at === at);
    const before = Math.max(at, ...pages.map(({ newest }) => newest?.at ?? at));
    this.#add({ after: edge - CLOSED_MS, before }, long);
    this.admitInstant(at);
    return this.around(edge) !== undefined;
  }

  /** As RULE ties: rows of an instant beside a silence are known if several questions with room left show the same ones. */
  admitInstant(at: Instant | undefined): void {
    const isBeside = this.intervals.some(({ after, before }) => after === at || before === at);
    if (at !== undefined && isBeside && isInstantSeen(this.#pages, at))
      this.intervals = withInstant(this.intervals, at);
  }

  /** The first row after an instant on a long question: history may begin there. */
  firstBehind = (edge: Instant): Instant | undefined => this.#longFrom(edge)[0]?.first?.at;

  #longFrom(edge: Instant): ShownPage[] {
    const founded = this.#known.founded ?? Number.NEGATIVE_INFINITY;
    return this.#pages.filter((page) => {
      const { query, first } = page;
      if (!first || first.at < edge || (query.order === 'desc' && !hasRoom(page))) return false;
      if (query.start > edge - APART_MS && query.start > founded && !this.#isAsLongAsCanBe(page)) return false;
      // If a known row in its range does not show, other rows may not show either.
      return !this.rows.has(Math.min(edge - CLOSED_MS, query.start + WIDENED_MS), first.at);
    });
  }

  /**
   * As RULE cover: overlapping short questions show nothing between two rows that no answer can show together, because the service refuses
   * long ranges, or after the last row.
   */
  admitSilence(from: Instant, to = Number.POSITIVE_INFINITY): boolean {
    const last = this.#pages.at(-1);
    if (!Number.isFinite(this.#mostRangeMs) || !last || this.rows.has(from, to)) return false;
    const isEnd = to === Number.POSITIVE_INFINITY;
    const silence = { from, to: isEnd ? last.answeredAt : to };
    const valid = this.#pages.filter((page) => !isRefuted(page, (after, before) => this.rows.has(after, before)));
    if (!isSilent(valid, silence, this.#mostRangeMs, isEnd)) return false;
    if (isEnd && !valid.some((page) => this.ends.isPresent(page))) return false;
    if (isEnd) this.knowsEnd = true;
    this.#add({ after: from, before: to }, last);
    return true;
  }

  /** The service refuses longer ranges than this, so that no longer question is possible. */
  limitRange(ms: number): void {
    this.#mostRangeMs = Math.min(this.#mostRangeMs, ms);
    this.#seenMs = Math.min(this.#seenMs, ms);
  }

  #isAsLongAsCanBe = ({ query: { start, end } }: ShownPage): boolean => end - start >= this.#mostRangeMs * 0.9;
  #overlap = (long: ShownPage): number =>
    this.#isAsLongAsCanBe(long) ? Math.min(WIDENED_MS, this.#mostRangeMs / 4) : 0;

  /** How much of a silence short questions cover so far, from the row before it on. */
  coveredUntil = (silence: Span): Instant => coveredUntil(this.#pages, silence, this.#seenMs);

  /** How long the next question that covers a silence from one side may be. */
  longestQuestion = (silence: Span, at: Instant, side: Side): number =>
    longestQuestion(silence, this.#seenMs, side === 'from' ? at - silence.from : silence.to - at);

  /** Admits a pass through the rows of one instant. Returns whether all of them are known now. */
  admitCount(at: Instant, count: Count): boolean {
    const passes = [...(this.#counts.get(at) ?? []), count];
    this.#counts.set(at, passes);
    const isLast = this.knowsEnd && this.intervals.at(-1)?.after === at;
    if (!allTiesSeen(passes, isLast)) return false;
    // RULE settled, for counted rows: a row of this instant may still arrive.
    if (passes.some(({ answeredAt }) => at >= answeredAt - this.#known.settleMs)) return false;
    this.#counts.delete(at);
    this.intervals = withInstant(this.intervals, at);
    return true;
  }

  /**
   * RULE nothing. A stream is empty if no question shows a row, long ones in both orders and short ones that cover the time, and an earlier
   * poll saw none either. An empty answer proves nothing, however often it comes in one run.
   */
  admitNothing(): void {
    if (this.intervals.length > 0 || this.rows.size > 0 || this.newestSeen !== undefined) return;
    if (this.#pages.some(({ count }) => count > 0)) return;
    for (const { start, end } of this.#known.empty ?? []) {
      const isAsked = (order: 'asc' | 'desc'): boolean =>
        this.#pages.some((page) => isLong(page, order, { from: start, to: end }) || this.#isAsLongAsCanBe(page));
      if (!isAsked('asc') || !isAsked('desc') || !isCovered(this.#pages, { from: start, to: end }, 0, 'to')) continue;
      for (const page of this.#pages) this.#add({ after: start - 1, before: end }, page);
    }
  }

  admitUnreadable(tried: Unreadable): boolean {
    const interval = aroundUnreadable(tried);
    if (interval) this.#add(interval, tried.before[0]);
    return interval !== undefined;
  }

  /** RULE settled. An answer proves nothing about rows younger than its clock minus the settle time: events arrive late. */
  #add({ after, before: shown }: Interval, { answeredAt }: Pick<Observation, 'answeredAt'>): void {
    const settled = answeredAt - this.#known.settleMs;
    if (shown > settled) this.settledThrough = settled;
    const before = Math.min(shown, settled);
    if (after >= before) return;
    this.intervals = withInterval(this.intervals, { after, before });
  }

  /** Whether nothing was proven before this run: how the service treats a question is then unknown. */
  get isNew(): boolean {
    return this.#known.newestSeen === undefined || !this.#known.isProven;
  }
}
