/** Who goes first: the tail of today, then repairs, then history. */
export const LANES = ['fresh', 'repair', 'backfill'] as const;
export type Lane = (typeof LANES)[number];

/** The request may leave now. */
export interface Grant {
  granted: true;
  /** The time between two pauses in which it leaves: its outcome is reported with it. */
  era: number;
  /** Nobody else leaves before it is answered: a probe after a pause, or the first on a cold connection. */
  alone: boolean;
}

/** Not yet: ask again after so long. */
export interface Refusal {
  granted: false;
  era: number;
  waitMs: number;
}

export type Turn = Grant | Refusal;

/**
 * Where the requests of a key get their turn. A slot is asked for when it is wanted, and granted only when it is there:
 * nothing is booked ahead, so a ticket that leaves while it waits burns nothing, and a more urgent lane or a pause is
 * never behind what was booked before it. Whoever is told to wait is known to wait until then, and is let through.
 */
export interface Slots {
  ask(lane: Lane, cold: boolean): Promise<Turn>;
  /** The process came round to sending it: perhaps late, and then what is counted from it is, too. */
  departed(grant: Grant): void;
  /** It came home with something else than a 429. */
  settled(grant: Grant): void;
  /** The service said 429: a pause for every lane. Without a grant it is news from elsewhere. */
  tooMany(afterMs: number | undefined, grant?: Grant): Promise<void>;
  /** Pauses since this process began. */
  pauses(): number;
}
