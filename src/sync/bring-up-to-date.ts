import type { Cursor } from '../cursor/cursors.ts';
import type { Reader, SweepRequest, TailEnd } from '../extract/reader.ts';
import type { Entry } from '../model/coverage.ts';
import type { Instant } from '../model/instant.ts';
import type { Window } from '../model/window.ts';
import type { Committer } from './committer.ts';
import { joined, resweeps, unproven } from './plan.ts';

/** How a stream is to be kept: what the config says of it. */
export interface Upkeep {
  lookbackMs: number;
  /** Events may arrive this late without being missed: nothing younger is ever called complete. */
  settleMs: number;
  resweepMs: number | undefined;
}

export interface Standing {
  since: Instant;
  cursor: Cursor | undefined;
  /** The ledger of each sink, as it is when asked. */
  ledgers(): Promise<ReadonlyArray<readonly Entry[]>>;
}

export interface Work {
  upkeep: Upkeep;
  standing: Standing;
  reader: Reader;
  committer: Pick<Committer, 'add' | 'flush'>;
  signal: AbortSignal;
  /** Says which window is being read now. */
  onWindow(window: Window): void;
}

/**
 * The heart of a sync, knowing neither database nor queue. The tail first, so that what is new is there at once; then whatever
 * is not yet proven; then what is due to be read again.
 */
export async function bringUpToDate(work: Work): Promise<void> {
  const { standing, reader, committer, signal, onWindow } = work;
  const tail = await deliverTail(work);
  await committer.flush();
  for (const { window, lane } of await windowsToRead(work, tail)) {
    onWindow(window);
    const request = { window, since: standing.since, far: tail.far, lane, signal };
    for await (const slice of reader.sweep(request)) await committer.add(slice);
  }
  await committer.flush();
}

/** Delivers what is new. If it meets what is known, that is the whole work of a poll, and its proof. */
async function deliverTail({ upkeep, standing, reader, committer, signal }: Work): Promise<TailEnd> {
  const { since, cursor } = standing;
  const floor = cursor?.completeThrough;
  const lookback = floor === undefined ? undefined : Math.max(since, floor - upkeep.lookbackMs);
  const slices = reader.tail({ floor, lookback, since, lane: 'fresh', signal });
  for (;;) {
    const next = await slices.next();
    if (!next.done) {
      await committer.add(next.value);
      continue;
    }
    const { reached, far, serverNow } = next.value;
    const window = { start: Math.max(since, Math.floor(far.above ?? since) + 1), end: serverNow - upkeep.settleMs };
    if (reached && window.start < window.end) await committer.add({ window, certified: true, rows: [], rejected: [] });
    return next.value;
  }
}

/** What is left after the tail: windows never proven, and those that are due to be read again. */
async function windowsToRead(
  { upkeep, standing }: Work,
  { serverNow }: TailEnd,
): Promise<Array<Pick<SweepRequest, 'window' | 'lane'>>> {
  const { since, cursor } = standing;
  const whole = { start: since, end: serverNow - upkeep.settleMs };
  const floor = cursor?.completeThrough ?? since;
  // Where the tail has just read this bit, the sweep sees so at once and asks nothing.
  const again = { start: Math.max(since, floor - upkeep.lookbackMs), end: floor };
  const ledgers = await standing.ledgers();
  const fresh = ledgers.flatMap((ledger) => unproven(ledger, whole, again, serverNow));
  const repair = ledgers.flatMap((ledger) => resweeps(ledger, serverNow, upkeep.resweepMs));
  return [
    ...joined(fresh).map((window) => ({ window, lane: 'fresh' as const })),
    ...joined(repair).map((window) => ({ window, lane: 'repair' as const })),
  ];
}
