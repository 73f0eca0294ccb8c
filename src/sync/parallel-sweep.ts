import { AsyncResource } from 'node:async_hooks';
import type { Lane } from '../api/limiter.ts';
import type { Profile, Slice } from '../extract/reader.ts';
import { type Instant, toIso } from '../model/instant.ts';
import { observed } from '../model/log.ts';
import { HOUR_MS, type Window } from '../model/window.ts';

/** A finished chain takes over the later half of the part with the most rows expected, so where the rows are need not be known. */
interface ParallelSweep<T extends Wanted> {
  /** How many chains run in parallel. Called repeatedly: the number follows the latency of the service. */
  chainsAtOnce(): number;
  profile(): Profile;
  /** A part is split only if each half is expected to have this many pages. */
  pagesWorth?: number;
  signal: AbortSignal;
  sweep(window: Window, share: T, signal: AbortSignal): AsyncGenerator<Slice, void>;
  /** `reader` identifies the chain; each chain reads a contiguous range from its start on. */
  take(slice: Slice, share: T, reader: object): Promise<void>;
}

interface Wanted {
  window: Window;
  lane: Lane;
}

/** A split costs one extra request: at most a twentieth of the requests for what it splits. */
const PAGES_WORTH = 10;
/** At the end of a long read, when too few chains are left to use up the budget, the extra request delays nothing. */
const PAGES_WORTH_IDLE = 1;
/** Halves may have fewer rows than expected if rows are uneven. One split per this many pages limits the extra requests to 5 %. */
export const PAGES_PER_EDGE = 40;

/** What a chain still has to read. `end` moves back when another chain takes over the later half. */
interface Part<T> {
  share: T;
  at: Instant;
  end: Instant;
  /** Rows per millisecond on its last page; 0 before the first page, as it is not known where rows begin. */
  density: number;
}

export async function sweepInParallel<T extends Wanted>(
  shares: readonly T[],
  { chainsAtOnce, profile, pagesWorth = PAGES_WORTH, signal, sweep, take }: ParallelSweep<T>,
): Promise<void> {
  const waiting = [...shares];
  const underWay = new Set<Part<T>>();
  const chains: Promise<void>[] = [];
  const stop = new AbortController();
  const sweepSignal = AbortSignal.any([signal, stop.signal]);
  let [pages, splits] = [0, 0];
  let failure: { reason: unknown } | undefined;
  const rowsLeft = ({ at, end, density }: Part<T>): number => density * (end - at);

  function takeOver(): Part<T> | undefined {
    const isIdle = pages >= PAGES_PER_EDGE && 2 * underWay.size < chainsAtOnce();
    if (splits >= chainsAtOnce() + (pages / PAGES_PER_EDGE) * (isIdle ? 2 : 1)) return undefined;
    const [most] = [...underWay].sort((a, b) => rowsLeft(b) - rowsLeft(a));
    const { isStartSeen, pageRows } = profile();
    const worth = isIdle ? PAGES_WORTH_IDLE : pagesWorth;
    // Nothing is split before it is known how the server treats a start: if it widens bounds to days, a day would be read twice.
    if (!isStartSeen || !most || rowsLeft(most) < 2 * worth * pageRows) return undefined;
    const middle = middleOf(most, profile());
    if (middle === undefined) return undefined;
    splits += 1;
    const later = { ...most, at: middle };
    most.end = middle;
    return later;
  }

  // In traces, a chain is a child of the run, not of the chain that it took over from.
  const begin = AsyncResource.bind(read);

  function startChains(): void {
    while (!failure && underWay.size < chainsAtOnce()) {
      const share = waiting.shift();
      const next = share ? { share, at: share.window.start, end: share.window.end, density: 0 } : takeOver();
      if (!next) return;
      underWay.add(next);
      chains.push(begin(next));
    }
  }

  async function read(part: Part<T>): Promise<void> {
    const { share, at, end } = part;
    try {
      await observed('window', { lane: share.lane, start: toIso(at), end: toIso(end) }, async () => {
        for await (const slice of sweep({ start: at, end }, share, sweepSignal)) {
          pages += 1;
          if (slice.window) noteProgress(part, slice.window, slice.rows.length);
          await take(slice, share, part);
          if (part.at >= part.end) break;
        }
      });
    } catch (reason) {
      // Recovery: left to the caller. Later errors are caused by stopping the other chains; only the first one matters.
      failure ??= { reason };
      stop.abort();
    }
    underWay.delete(part);
    startChains();
  }

  function noteProgress(part: Part<T>, { start, end }: Window, rows: number): void {
    part.at = end;
    part.density = rows / Math.max(1, end - start);
    startChains();
  }

  startChains();
  // The list grows during the loop: a chain starts others before it ends.
  for (const chain of chains) await chain;
  if (failure) throw failure.reason;
}

/** If the server widens bounds to days, a split would read a whole day again, which costs more than it saves. Hours are worth it. */
function middleOf({ at, end }: Pick<Part<unknown>, 'at' | 'end'>, profile: Profile): Instant | undefined {
  const middle = Math.floor((at + end) / 2);
  if (profile.granularity === 'none' || profile.granularity === 'day') return undefined;
  if (profile.granularity === 'exact') return middle;
  const edge = startOfHour(middle);
  return edge > at ? edge : undefined;
}

const startOfHour = (at: Instant): Instant => Math.floor(at / HOUR_MS) * HOUR_MS;
