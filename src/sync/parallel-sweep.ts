import { AsyncResource } from 'node:async_hooks';
import type { Lane } from '../api/limiter.ts';
import type { Profile, Slice } from '../extract/reader.ts';
import { type Instant, toIso } from '../model/instant.ts';
import { observed } from '../model/log.ts';
import { HOUR_MS, type Window } from '../model/window.ts';

/** A chain that is done takes over the later half of what promises most rows: nobody has to know where the rows are. */
interface ParallelSweep<T extends Wanted> {
  /** How many chains run at once. Called repeatedly: the number follows the latency of the service. */
  chainsAtOnce(): number;
  profile(): Profile;
  /** A window is split only if each half promises this many pages. */
  pagesWorth?: number;
  signal: AbortSignal;
  sweep(window: Window, share: T, signal: AbortSignal): AsyncGenerator<Slice, void>;
  /** With who read it: each reads a stretch of time from its start on. */
  take(slice: Slice, share: T, reader: object): Promise<void>;
}

interface Wanted {
  window: Window;
  lane: Lane;
}

/** An edge between two chains costs a request: a twentieth of what it divides, at most. */
const PAGES_WORTH = 10;
/** At the end of a long reading, when too few chains are left to use the budget, an edge costs nothing that anybody waits for. */
const PAGES_WORTH_IDLE = 1;
/** Rows may be unevenly spread, so that halves hold less than promised. One split per this many pages keeps the cost of edges under 5 %. */
export const PAGES_AN_EDGE = 40;

/** What a chain still has to read. Its end moves closer when another chain takes over the later half. */
interface Part<T> {
  share: T;
  at: Instant;
  end: Instant;
  /** Rows a millisecond, by its last page; none before the first: where rows begin is not known. */
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
  const still = AbortSignal.any([signal, stop.signal]);
  let [pages, halvings] = [0, 0];
  let failure: { reason: unknown } | undefined;
  const rowsBefore = ({ at, end, density }: Part<T>): number => density * (end - at);

  function takeOver(): Part<T> | undefined {
    const isIdle = pages >= PAGES_AN_EDGE && 2 * underWay.size < chainsAtOnce();
    if (halvings >= chainsAtOnce() + (pages / PAGES_AN_EDGE) * (isIdle ? 2 : 1)) return undefined;
    const [most] = [...underWay].sort((a, b) => rowsBefore(b) - rowsBefore(a));
    const { isStartSeen, pageRows } = profile();
    const worth = isIdle ? PAGES_WORTH_IDLE : pagesWorth;
    // Before it is known what the server does with a start, nothing is split: if it widens days, one is read twice.
    if (!isStartSeen || !most || rowsBefore(most) < 2 * worth * pageRows) return undefined;
    const middle = middleOf(most, profile());
    if (middle === undefined) return undefined;
    halvings += 1;
    const later = { ...most, at: middle };
    most.end = middle;
    return later;
  }

  // Traces show a chain as part of the run, not of the chain it took over from.
  const begin = AsyncResource.bind(read);

  function fill(): void {
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
        for await (const slice of sweep({ start: at, end }, share, still)) {
          pages += 1;
          if (slice.window) noteProgress(part, slice.window, slice.rows.length);
          await take(slice, share, part);
          if (part.at >= part.end) break;
        }
      });
    } catch (reason) {
      // Recovery: left to the caller. The other chains fail because they were stopped; only the first error matters.
      failure ??= { reason };
      stop.abort();
    }
    underWay.delete(part);
    fill();
  }

  function noteProgress(part: Part<T>, { start, end }: Window, rows: number): void {
    part.at = end;
    part.density = rows / Math.max(1, end - start);
    fill();
  }

  fill();
  // The list grows during the loop: a chain starts others before it ends itself.
  for (const chain of chains) await chain;
  if (failure) throw failure.reason;
}

/** A server that widens bounds to days reads the whole day before an edge again: a split would cost more than it saves. Hours are worth it. */
function middleOf({ at, end }: Pick<Part<unknown>, 'at' | 'end'>, profile: Profile): Instant | undefined {
  const middle = Math.floor((at + end) / 2);
  if (profile.granularity === 'none' || profile.granularity === 'day') return undefined;
  if (profile.granularity === 'exact') return middle;
  const edge = startOfHour(middle);
  return edge > at ? edge : undefined;
}

const startOfHour = (at: Instant): Instant => Math.floor(at / HOUR_MS) * HOUR_MS;
