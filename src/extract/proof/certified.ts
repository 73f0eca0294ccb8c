import type { Instant } from '../../model/instant.ts';
import type { Window } from '../../model/window.ts';
import type { Evidence } from './evidence.ts';
import { CLOSED_MS } from './intervals.ts';

let certify: (window: Window) => Certified;

/** A window that was proven complete. Only `prove` makes one; the ledger and the watermark accept nothing else. */
export class Certified implements Window {
  readonly #proven = true;
  readonly start: Instant;
  readonly end: Instant;

  private constructor({ start, end }: Window) {
    this.start = start;
    this.end = end;
  }

  /** Whether this is the kernel's own word for exactly that window. */
  static covers(certified: Certified | undefined, window: Window): boolean {
    if (certified === undefined || !(#proven in certified)) return false;
    return certified.start <= window.start && window.end <= certified.end;
  }

  /** Neighbours are one window. */
  static join(a: Certified, b: Certified): Certified | undefined {
    if (!(#proven in a) || !(#proven in b)) return undefined;
    return a.end === b.start ? new Certified({ start: a.start, end: b.end }) : undefined;
  }

  /**
   * What was certified before, read back from a receipt, or what an operator calls complete by hand (`cursor set --force`). Whoever calls
   * this vouches for it; `test/unit/layers.test.ts` knows both of them.
   */
  static onRecord({ start, end }: Window): Certified {
    return new Certified({ start, end });
  }

  static {
    certify = (window) => new Certified(window);
  }
}

/** What is missing for a proof. */
export type Gap = Window;

export type Verdict = { proven: Certified; gaps?: undefined } | { proven?: undefined; gaps: readonly Gap[] };

/** RULE window. A window is complete where one unbroken interval begins before it and reaches its end. */
export function prove({ start, end }: Window, evidence: Evidence): Verdict {
  const gaps: Gap[] = [];
  for (let at = start; at < end; ) {
    const through = evidence.through(at);
    if (through !== undefined && at === start && through >= end) return { proven: certify({ start, end }) };
    if (through !== undefined) {
      at = through;
      continue;
    }
    const next = Math.min(end, evidence.nextFrom(at) ?? end);
    // The instant that an interval begins at is not in it.
    const gap = { start: at, end: next > at ? next : Math.min(end, at + CLOSED_MS) };
    const last = gaps.at(-1);
    if (last && last.end === gap.start) gaps[gaps.length - 1] = { start: last.start, end: gap.end };
    else gaps.push(gap);
    at = gap.end;
  }
  return { gaps };
}
