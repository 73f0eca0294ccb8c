import type { Instant } from '../../model/instant.ts';
import { HOUR_MS, MINUTE_MS } from '../../model/window.ts';
import { CLOCKS_MS, SHOWN_MS, WIDENED_MS } from './answer.ts';
import { reachesNow, type ShownPage } from './cover.ts';
import type { Prior } from './prior.ts';

/** An end this far ahead reaches the present even if it is rounded down to its day, in any time zone. */
export const FAR_AHEAD_MS = 38 * HOUR_MS;

type End = Pick<ShownPage, 'query' | 'answeredAt'>;

/**
 * What the questions of a run, in any of its readings, show about the treatment of `end`. Services shift ends back, or round them down, and
 * some clamp one in the future to now before they do.
 */
export class Ends {
  readonly #known: Prior;
  /** A question has shown the row right before its end. */
  areKept = false;
  /** A question with an end far ahead shows rows that one ending now hides, so it is not clamped to now. */
  reachAhead = false;

  constructor(known: Prior) {
    this.#known = known;
  }

  notice(page: ShownPage, hides: (after: Instant, before: Instant) => boolean): void {
    this.areKept ||= this.#isKept(page);
    const { query, answeredAt, newest } = page;
    const isNow = query.order === 'desc' && Math.abs(query.end - answeredAt) <= CLOCKS_MS;
    this.reachAhead ||= isNow && newest !== undefined && hides(newest.at, answeredAt - this.#known.settleMs);
  }

  /** Whether a question shows the row right before its end, or rows on both sides of it. */
  #isKept({ query: { end }, first, newest }: ShownPage): boolean {
    if (!first || !newest || end > newest.at + this.#behindMs() + SHOWN_MS) return false;
    return this.#isSameUnit(newest.at, end) || (first.at < end && end <= newest.at);
  }

  get areKnownKept(): boolean {
    return this.areKept || this.#known.keepsEnds === true;
  }

  /** Until when an answer can show rows. What earlier runs saw of ends counts only if a known row shows. */
  reachOf({ query: { end }, answeredAt }: End, isDoubtful = false): Instant {
    const areKept = isDoubtful ? this.areKept : this.areKnownKept;
    const reachAhead = this.reachAhead || (!isDoubtful && this.#known.reachesAhead === true);
    const isSure = areKept || (reachAhead && end >= answeredAt + FAR_AHEAD_MS);
    if (!isSure) return Math.min(end, answeredAt) - WIDENED_MS;
    return end < answeredAt ? end : Number.POSITIVE_INFINITY;
  }

  /** Whether an answer can show rows up to the present. */
  isPresent = (page: End, isDoubtful = false): boolean =>
    reachesNow(page) && this.reachOf(page, isDoubtful) >= page.answeredAt - CLOCKS_MS;

  /** The end of a question right after a row, to test whether ends are kept; undefined if a rounded end may show that row, too. */
  behindRow = (at: Instant): Instant | undefined => {
    const end = Math.ceil(at) + this.#behindMs();
    return this.#isSameUnit(at, end) ? end : undefined;
  };

  /** How far after a row such a question may end: the time that it may hide has not settled. */
  #behindMs = (): number => (this.#known.settleMs > MINUTE_MS ? MINUTE_MS : 0) + SHOWN_MS;

  #isSameUnit(a: Instant, b: Instant): boolean {
    const unit = this.#known.settleMs > MINUTE_MS ? HOUR_MS : MINUTE_MS;
    return Math.floor(a / unit) === Math.floor(b / unit);
  }
}
