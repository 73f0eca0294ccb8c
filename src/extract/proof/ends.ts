import type { Instant } from '../../model/instant.ts';
import { HOUR_MS, MINUTE_MS } from '../../model/window.ts';
import { CLOCKS_MS, SHOWN_MS, WIDENED_MS } from './answer.ts';
import { type Look, reachesNow } from './cover.ts';
import type { Prior } from './prior.ts';

/** An end so far ahead reaches the present even if it is rounded down to its day, in any zone. */
export const FAR_AHEAD_MS = 38 * HOUR_MS;

type End = Pick<Look, 'query' | 'answeredAt'>;

/**
 * What the questions of a run show of ends, whichever reading asks them. Services shift ends back, or round them down, and some take one in the future for the
 * present before they do.
 */
export class Ends {
  readonly #known: Prior;
  /** One has shown the row that it lies right behind. */
  areKept = false;
  /** One far ahead shows what one at the present hides, so that it is not taken for the present. */
  reachAhead = false;

  constructor(known: Prior) {
    this.#known = known;
  }

  notice(look: Look, hides: (after: Instant, before: Instant) => boolean): void {
    this.areKept ||= this.#isKept(look);
    const { query, answeredAt, newest } = look;
    const isNow = query.order === 'desc' && Math.abs(query.end - answeredAt) <= CLOCKS_MS;
    this.reachAhead ||= isNow && newest !== undefined && hides(newest.at, answeredAt - this.#known.settleMs);
  }

  /** A question shows the row that it ends right behind, or rows on both sides of its end. */
  #isKept({ query: { end }, first, newest }: Look): boolean {
    if (!first || !newest || end > newest.at + this.#behindMs() + SHOWN_MS) return false;
    return this.#isSameUnit(newest.at, end) || (first.at < end && end <= newest.at);
  }

  get areKnownKept(): boolean {
    return this.areKept || this.#known.keepsEnds === true;
  }

  /** Until when an answer can show rows. What was seen of ends in earlier runs counts where a row that is known shows. */
  reachOf({ query: { end }, answeredAt }: End, isDoubtful = false): Instant {
    const areKept = isDoubtful ? this.areKept : this.areKnownKept;
    const reachAhead = this.reachAhead || (!isDoubtful && this.#known.reachesAhead === true);
    const isSure = areKept || (reachAhead && end >= answeredAt + FAR_AHEAD_MS);
    if (!isSure) return Math.min(end, answeredAt) - WIDENED_MS;
    return end < answeredAt ? end : Number.POSITIVE_INFINITY;
  }

  /** Whether an answer can show what there is at the present. */
  isPresent = (look: End, isDoubtful = false): boolean =>
    reachesNow(look) && this.reachOf(look, isDoubtful) >= look.answeredAt - CLOCKS_MS;

  /** Where a question ends right behind a row, to show whether ends are kept; undefined where one that is rounded down may show it even so. */
  behindRow = (at: Instant): Instant | undefined => {
    const end = Math.ceil(at) + this.#behindMs();
    return this.#isSameUnit(at, end) ? end : undefined;
  };

  /** So far behind a row a question may end that is to show it: what is hidden then is not settled. */
  #behindMs = (): number => (this.#known.settleMs > MINUTE_MS ? MINUTE_MS : 0) + SHOWN_MS;

  #isSameUnit(a: Instant, b: Instant): boolean {
    const unit = this.#known.settleMs > MINUTE_MS ? HOUR_MS : MINUTE_MS;
    return Math.floor(a / unit) === Math.floor(b / unit);
  }
}
