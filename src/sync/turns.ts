import type { Lease } from '../cursor/leases.ts';
import type { Committer } from './committer.ts';

/** Lets a sync that waits for the stream go first, between two commits. */
export interface Turns {
  /** Before every slice that is added; may take as long as the other's turn. */
  wait(): Promise<void>;
}

const LOOK_EVERY_MS = 500;

export function createTurns(lease: Lease, committer: Pick<Committer, 'flush'>, signal: AbortSignal): Turns {
  let lookedAt = performance.now();
  let turn: Promise<void> | undefined;

  const handOver = async (): Promise<void> => {
    if (!(await lease.isWanted())) return;
    await committer.flush();
    await lease.giveWay(signal);
  };

  return {
    async wait() {
      if (!turn && performance.now() - lookedAt >= LOOK_EVERY_MS) {
        // Several windows are read side by side: one of them looks, the others wait with it.
        turn = handOver().finally(() => {
          lookedAt = performance.now();
          turn = undefined;
        });
      }
      await turn;
    },
  };
}
