import type { Reader, Slice, TailEnd } from '../extract/reader.ts';
import type { Entry } from '../model/coverage.ts';
import type { Instant } from '../model/instant.ts';
import { observed } from '../model/observed.ts';
import type { Window } from '../model/window.ts';
import type { Committer } from './committer.ts';
import { resweeps, type Share, shared, unproven } from './plan.ts';
import { readTogether } from './read-together.ts';

/** How a stream is to be kept: what the config says of it. */
export interface Upkeep {
  lookbackMs: number;
  /** Events may arrive this late without being missed: nothing younger is ever called complete. */
  settleMs: number;
  resweepMs: number | undefined;
}

export interface Standing {
  since: Instant;
  sinks: readonly SinkStanding[];
}

/** How far a sink had come when the run began. */
export interface SinkStanding {
  sink: string;
  completeThrough: Instant | undefined;
  /** As it is when asked. */
  ledger(): Promise<readonly Entry[]>;
}

export interface Work {
  upkeep: Upkeep;
  standing: Standing;
  reader: Reader;
  committer: Pick<Committer, 'add' | 'flush'>;
  signal: AbortSignal;
  /** How many windows are read at a time. */
  lanes(): number;
  /** Half a window is given to a free lane when it promises so many pages. */
  pagesWorth?: number;
  /** Says which window is being read now. */
  onWindow(window: Window): void;
}

/**
 * The heart of a sync, knowing neither database nor queue. The tail first, so that what is new is there at once; then whatever
 * is not yet proven; then what is due to be read again.
 */
export async function bringUpToDate(work: Work): Promise<void> {
  const { standing, reader, committer } = work;
  const tail = await observed('window', { lane: 'fresh', tail: true }, async () => {
    const end = await deliverTail(work);
    await committer.flush();
    return end;
  });
  const { fresh, repair } = await windowsToRead(work, tail);
  const toRead = [
    ...fresh.map((share) => ({ ...share, lane: 'fresh' as const })),
    ...repair.map((share) => ({ ...share, lane: 'repair' as const })),
  ];
  await readTogether(toRead, {
    ...work,
    profile: reader.profile,
    sweep: (window, { lane }, signal) => {
      work.onWindow(window);
      return reader.sweep({ window, since: standing.since, far: tail.far, lane, signal });
    },
    take: (slice, { sinks }) => committer.add(slice, sinks),
  });
  await committer.flush();
}

/** Delivers what is new. If it meets what is known, that is the whole work of a poll, and its proof. */
async function deliverTail({ upkeep, standing, reader, committer, signal }: Work): Promise<TailEnd> {
  const { since } = standing;
  // Up to the sink that is furthest ahead: what another lacks behind that is a window of its own, and is read for it alone.
  const floor = furthest(standing);
  const lookback = floor === undefined ? undefined : Math.max(since, floor - upkeep.lookbackMs);
  const slices = reader.tail({ floor, lookback, since, lane: 'fresh', signal });
  let held: Slice | undefined;
  let pages = 0;
  for (;;) {
    const next = await slices.next().catch(async (error: unknown) => {
      if (held) await committer.add(held);
      throw error;
    });
    if (!next.done) {
      if (held) await committer.add(held);
      held = next.value;
      pages += 1;
      continue;
    }
    const { reached, far, serverNow } = next.value;
    const window = { start: Math.max(since, Math.floor(far.above ?? since) + 1), end: serverNow - upkeep.settleMs };
    if (!reached || window.start >= window.end) {
      if (held) await committer.add(held);
    } else if (held && pages === 1) {
      // One page is one snapshot: what the sink has besides it there has vanished. Several may have shifted in between.
      await committer.add({ ...held, window, certified: true, whole: held.rejected.length === 0 });
    } else {
      if (held) await committer.add(held);
      await committer.add({ window, certified: true, rows: [], rejected: [] });
    }
    return next.value;
  }
}

const furthest = ({ sinks }: Standing): Instant | undefined =>
  sinks.reduce<Instant | undefined>(
    (most, { completeThrough: at }) => (most === undefined || at === undefined ? (most ?? at) : Math.max(most, at)),
    undefined,
  );

/** What is left after the tail: windows never proven, and those that are due to be read again; each with the sinks it is for. */
async function windowsToRead(
  { upkeep, standing }: Work,
  { serverNow }: TailEnd,
): Promise<{ fresh: Share[]; repair: Share[] }> {
  const { since, sinks } = standing;
  const whole = { start: since, end: serverNow - upkeep.settleMs };
  const needs = await Promise.all(
    sinks.map(async ({ sink, completeThrough: floor = since, ledger }) => {
      // Where the tail has just read this bit, the sweep sees so at once and asks nothing.
      const again = { start: Math.max(since, floor - upkeep.lookbackMs), end: floor };
      const entries = await ledger();
      return {
        sink,
        fresh: unproven(entries, whole, again, serverNow),
        repair: resweeps(entries, serverNow, upkeep.resweepMs),
      };
    }),
  );
  return {
    fresh: shared(needs.map(({ sink, fresh }) => ({ sink, windows: fresh }))),
    repair: shared(needs.map(({ sink, repair }) => ({ sink, windows: repair }))),
  };
}
