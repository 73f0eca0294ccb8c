import type { Lease } from '../cursor/leases.ts';
import type { Committer } from './committer.ts';

/** Lets a sync that waits for the stream go first, between two commits. */
export interface Turns {
  /** Now and then. Does not wait for the other's turn: reading goes on, and only the commits stand still. */
  giveWayIfWanted(): void;
  /** Throws what kept the stream from being taken again. */
  settled(): Promise<void>;
}

const LOOK_EVERY_MS = 500;

export function createTurns(lease: Lease, committer: Pick<Committer, 'between'>, signal: AbortSignal): Turns {
  let lookedAt = performance.now();
  let isLooking = false;
  let turn: Promise<void> = Promise.resolve();

  const look = async (): Promise<void> => {
    if (await lease.isWanted()) await committer.between(() => lease.giveWay(signal));
  };

  return {
    giveWayIfWanted() {
      if (isLooking || performance.now() - lookedAt < LOOK_EVERY_MS) return;
      isLooking = true;
      turn = look().finally(() => {
        lookedAt = performance.now();
        isLooking = false;
      });
      turn.catch(() => {}); // Thrown by `settled`, and by every commit that waits for it.
    },
    settled: () => turn,
  };
}
