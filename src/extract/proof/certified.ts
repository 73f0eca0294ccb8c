import type { Instant } from '../../model/instant.ts';
import type { Window } from '../../model/window.ts';
import type { Evidence } from './evidence.ts';
import { CLOSED_MS } from './intervals.ts';

let certify: (window: Window) => Certified;

/** A window proven complete. Only `prove` makes one; the ledger and the watermark accept nothing else. */
export class Certified implements Window {
  readonly #proven = true;
  readonly start: Instant;
  readonly end: Instant;

  private constructor({ start, end }: Window) {
    this.start = start;
    this.end = end;
  }

  /** Whether this is the kernel's own certificate and covers that window. */
  static covers(certified: Certified | undefined, window: Window): boolean {
    if (certified === undefined || !(#proven in certified)) return false;
    return certified.start <= window.start && window.end <= certified.end;
  }

  /** Joins two adjacent windows; undefined if they are not. */
  static join(a: Certified, b: Certified): Certified | undefined {
    if (!(#proven in a) || !(#proven in b)) return undefined;
    return a.end === b.start ? new Certified({ start: a.start, end: b.end }) : undefined;
  }

  /**
   * A window certified before, read back from a receipt, or one that an operator declares complete by hand (`cursor set --force`). The
   * caller vouches for it; `test/unit/layers.test.ts` lists the two callers.
   */
  static onRecord({ start, end }: Window): Certified {
    return new Certified({ start, end });
  }

  static {
    certify = (window) => new Certified(window);
  }
}

/** A part of a window that is not proven. */
export type Gap = Window;

export type Verdict = { proven: Certified; gaps?: undefined } | { proven?: undefined; gaps: readonly Gap[] };

/** RULE window. A window is complete if one unbroken interval begins before it and reaches its end. */
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
    // An interval does not include the instant at which it begins.
    const gap = { start: at, end: next > at ? next : Math.min(end, at + CLOSED_MS) };
    const last = gaps.at(-1);
    if (last && last.end === gap.start) gaps[gaps.length - 1] = { start: last.start, end: gap.end };
    else gaps.push(gap);
    at = gap.end;
  }
  return { gaps };
}
