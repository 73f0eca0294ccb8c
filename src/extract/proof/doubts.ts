import type { Instant } from '../../model/instant.ts';
import { type Observation, provenBy, SHOWN_MS, type Stamped } from './answer.ts';

/** What a service did once that makes its later answers weaker evidence. */
export class Doubts {
  /** The sort orders that an answer has ignored. */
  readonly #disordered = new Set<'asc' | 'desc'>();
  /** The newest row of earlier runs, if an end of the stream was accepted without it. */
  #gone: Instant | undefined;

  fork(): Doubts {
    const copy = new Doubts();
    for (const order of this.#disordered) copy.#disordered.add(order);
    copy.#gone = this.#gone;
    return copy;
  }

  /** RULE order, for answers that cannot show their order: once an order was ignored, rows of two instants must show it. */
  isOrdered({ query: { order } }: Observation, sorted: readonly Stamped[] | undefined): sorted is readonly Stamped[] {
    if (sorted === undefined) this.#disordered.add(order);
    else if (!this.#disordered.has(order) || sorted.length === 0 || provenBy(sorted)) return true;
    return false;
  }

  /** Records that an end of the stream was accepted without the newest known row. */
  takeForGone(at: Instant | undefined): void {
    this.#gone ??= at;
  }

  /** Whether a row shows that was considered gone: what was concluded without it is wrong. */
  isBack({ rows }: Observation): boolean {
    const gone = this.#gone;
    if (gone === undefined || !rows.some(({ at }) => Math.abs(at - gone) < SHOWN_MS)) return false;
    this.#gone = undefined;
    return true;
  }
}
