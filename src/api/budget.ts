import { RetryLater } from '../model/errors.ts';

/** By priority: today's tail, then repairs, then history. */
export const LANES = ['fresh', 'repair', 'backfill'] as const;
export type Lane = (typeof LANES)[number];

/**
 * The rules of a key's budget, as transitions of a state: of the row that all processes share, or of a single process.
 *
 * **Never one too many.** The requests of a budget of N a second form N chains: each one is sent a second and `MARGIN` after the N-th
 * before it was really sent. Any second then holds at most one request of each chain, however late single ones were. Only the network can
 * bring two of a chain closer: the margin, 30 ms, covers that.
 *
 * **Spaced.** Some services count the second before in proportion to the part of it that is left. They refuse what a sliding second lets
 * through, if gaps are uneven: so no request follows another closer than a second's N-th part, and only the margin makes up for lateness.
 *
 * **A 429** pauses every lane once. Then one request is sent alone, and its answer restores the pace: a single 429 costs no more than that.
 * Those that follow within ten seconds widen the gaps; each that follows within ten minutes adds `CAUTION` to every distance for half an
 * hour, because the network's delay varies by more than the margin.
 */
const MARGIN = 0.03;
export const CAUTION = 0.025;
const MOST_CAUTION = 0.1;
const CHANCE_MS = 600_000;
const CAUTIOUS_MS = 1_800_000;

/** The plan's rate as a distance, in milliseconds. */
export const gapOf = (perSecond: number): number => (1000 / perSecond) * (1 + MARGIN);

/** The minimum distance between two requests, however late the first was sent. */
const closest = (perSecond: number): number => 1000 / perSecond;

/** The maximum number of chains: larger budgets have a shorter time between two requests of a chain. */
const MOST_CHAINS = 16;

const WIDEN = 1.5;
const WIDEST = 4;
const STREAK_MS = 10_000;
/** The first pause if the service names no time; each further pause of a streak doubles it. */
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 16_000;

/** How long others wait for the answer to a probe, whose process may have died. */
const PROBE_MS = 5000;
/** On a cold connection a request arrives late, with the next one right behind it. Others wait for this handshake only. */
const COLD_MS = 500;
/** A rate that no process has used for this long no longer counts. */
const CAREFUL_MS = 10_000;
/** No slot is taken this far ahead, even by many processes. */
const FAR_AHEAD_MS = 60_000;

/** Times are milliseconds of one clock, 0 for never. */
export interface BudgetState {
  /** Counts the transitions. */
  version: number;
  /** The lowest of the rates that were used recently. */
  perSecond: number;
  carefulUntil: number;
  /** The schedule: when the next request may be sent. */
  nextAt: number;
  /** When the last requests were or will be sent, newest first. */
  leftAt: readonly number[];
  /** Counts the slots. */
  slots: number;
  pausedUntil: number;
  /** Incremented by every pause. A 429 for a request that was sent before the last pause starts no new one. */
  pauseCount: number;
  /** Pauses that followed each other closely. */
  streak: number;
  /** Added to every distance, until the time below. */
  caution: number;
  cautiousUntil: number;
  /** The next request is a probe. */
  isProbing: boolean;
  aloneUntil: number;
}

export const unused = (perSecond: number): BudgetState => ({
  ...{ version: 0, perSecond, carefulUntil: 0, nextAt: 0, leftAt: [], slots: 0, pausedUntil: 0 },
  ...{ pauseCount: 0, streak: 0, caution: 0, cautiousUntil: 0, isProbing: false, aloneUntil: 0 },
});

/** The request may be sent at that time. */
export interface Slot {
  at: number;
  number: number;
  pauseCount: number;
  /** No other request is sent before it is answered: a probe after a pause, or the first on a cold connection. */
  isAlone: boolean;
  isProbe: boolean;
}

/** Not yet: ask again after this long. */
export interface Wait {
  waitMs: number;
}

type Step<T> = [BudgetState, T];

export function takeSlot(before: BudgetState, rate: number, isCold: boolean, now: number): Step<Slot | Wait> {
  // The clock was set back: times in its future are void.
  const isVoid = (before.leftAt[0] ?? 0) > now + FAR_AHEAD_MS;
  const state = isVoid ? { ...unused(rate), pauseCount: before.pauseCount, version: before.version } : before;

  const isCareful = rate <= state.perSecond || state.carefulUntil <= now;
  const perSecond = isCareful ? rate : state.perSecond;
  const calmGap = gapOf(perSecond) * (state.cautiousUntil > now ? 1 + state.caution : 1);
  const isStrained = state.streak > 1 && now - state.pausedUntil < STREAK_MS;
  const gap = calmGap * (isStrained ? Math.min(WIDEN ** (state.streak - 1), WIDEST) : 1);

  // No slot is taken ahead for the end of a pause or the answer to a probe: both may take longer.
  if (state.pausedUntil > now) return [state, { waitMs: state.pausedUntil - now }];
  if (state.aloneUntil > now) return [state, { waitMs: Math.min(state.aloneUntil - now, gap / 4) }];

  const chains = Math.min(Math.max(Math.floor(perSecond), 1), MOST_CHAINS);
  const chainFreeAt = (state.leftAt[chains - 1] ?? 0) + calmGap * chains;
  const at = Math.max(state.nextAt, chainFreeAt, now);
  // Nor with widened gaps: each of many processes would hold a later slot, and keep all of them slow long afterwards.
  if (isStrained && at > now + gap) return [state, { waitMs: at - gap - now }];
  const slot = {
    at,
    number: state.slots + 1,
    pauseCount: state.pauseCount,
    isAlone: state.isProbing || isCold,
    isProbe: state.isProbing,
  };
  const taken = changed(state, {
    ...{ perSecond, carefulUntil: isCareful ? now + CAREFUL_MS : state.carefulUntil },
    ...{ slots: slot.number, leftAt: [at, ...state.leftAt].slice(0, MOST_CHAINS), isProbing: false },
    nextAt: Math.max(state.nextAt + gap, at + closest(perSecond)),
    aloneUntil: slot.isAlone ? at + (state.isProbing ? PROBE_MS : COLD_MS) : 0,
  });
  return [taken, slot];
}

const changed = (state: BudgetState, change: Partial<BudgetState>): BudgetState => ({
  ...{ ...state, ...change },
  version: state.version + 1,
});

/** A request was sent later than its slot: the next of its chain, and the next of all, are scheduled from the real time. */
function leaveLate(state: BudgetState, { number }: Slot, at: number): BudgetState {
  const leftAt = state.leftAt.map((left, i) => (i === state.slots - number ? Math.max(left, at) : left));
  const nextAt = Math.max(state.nextAt, at + closest(state.perSecond));
  return changed(state, { leftAt, nextAt });
}

/** The request sent alone was answered: others may be sent, unless another was sent alone since. */
const endAlone = (state: BudgetState, { pauseCount, number }: Slot): BudgetState =>
  pauseCount === state.pauseCount && number === state.slots ? changed(state, { aloneUntil: 0 }) : state;

interface TooManyRequests {
  afterMs: number | undefined;
  /** Undefined: the 429 was received elsewhere. */
  pauseCount: number | undefined;
  /** It was sent alone: another client uses the key, and more distance would not help. */
  wasAlone: boolean;
}

/** One pause for all. A 429 for a request that was sent before the last pause belongs to that pause. */
function pauseAll(
  state: BudgetState,
  { afterMs, pauseCount = state.pauseCount, wasAlone }: TooManyRequests,
  now: number,
): Step<number> {
  const isPaused = now < state.pausedUntil;
  const isNew = !isPaused && pauseCount >= state.pauseCount;
  if (!isPaused && !isNew) return [state, state.pauseCount];
  const sinceLast = now - state.pausedUntil;
  const streak = isNew ? (sinceLast < STREAK_MS ? state.streak + 1 : 1) : state.streak;
  const pauseMs = afterMs ?? Math.min(FIRST_PAUSE_MS * 2 ** (streak - 1), LONGEST_PAUSE_MS);
  const paused = changed(state, { streak, pausedUntil: Math.max(state.pausedUntil, now + pauseMs) });
  if (!isNew) return [paused, state.pauseCount];
  const began = { ...paused, pauseCount: state.pauseCount + 1, isProbing: true, aloneUntil: 0 };
  if (wasAlone || sinceLast > CHANCE_MS) return [began, began.pauseCount];
  const caution = Math.min((state.cautiousUntil > now ? state.caution : 0) + CAUTION, MOST_CAUTION);
  return [{ ...began, caution, cautiousUntil: now + CAUTIOUS_MS }, began.pauseCount];
}

/** Where a budget's state is kept. */
export interface BudgetStore {
  /** The present time on the state's clock, as this process estimates it. */
  now(): number;
  /** Applies one transition atomically and counts it in `budget_use`. */
  change<T>(step: (state: BudgetState, now: number) => Step<T>, counted?: Lane | 'too_many'): Promise<T>;
}

/** The state of a single process, without a database to share it. */
export function createOwnStore(perSecond: number, now: () => number = monotonic): BudgetStore {
  let state = unused(perSecond);
  return {
    now,
    async change(step) {
      const [next, result] = step(state, now());
      state = next;
      return result;
    },
  };
}

const monotonic = (): number => performance.timeOrigin + performance.now();

/** The budget of one key, for one process. */
export type Budget = ReturnType<typeof createBudget>;

/** A request that is sent later than this is reported as late. */
const LATE_MS = 5;

export function createBudget(perSecond: number, store: BudgetStore = createOwnStore(perSecond)) {
  /** A 429 that could not be shared with other processes yet. */
  let unshared: TooManyRequests | undefined;
  /** A request that was sent alone on a cold connection and answered. The next turn reports it, since usually no other request waits. */
  let ended: Slot | undefined;
  const lateAt = new WeakMap<Slot, number>();
  let countAtStart: number | undefined;
  let pauseCount = 0;

  function seen(count: number): void {
    countAtStart ??= count;
    pauseCount = Math.max(pauseCount, count);
  }

  async function shareRefusal(refused: TooManyRequests): Promise<void> {
    seen(await store.change((state, now) => pauseAll(state, refused, now), 'too_many'));
  }

  return {
    now: store.now,
    async take(lane: Lane, isCold: boolean): Promise<Slot | Wait> {
      if (unshared) await shareRefusal(unshared);
      unshared = undefined;
      const taking = (state: BudgetState, now: number): Step<Slot | Wait> => {
        seen(state.pauseCount);
        const isOver = ended !== undefined && state.aloneUntil > now;
        return takeSlot(isOver ? endAlone(state, ended as Slot) : state, perSecond, isCold, now);
      };
      const turn = await store.change(taking, lane);
      ended = undefined;
      return turn;
    },
    /** The request was sent, perhaps later than its slot. */
    left(slot: Slot): void {
      const at = store.now();
      if (at - slot.at <= LATE_MS) return;
      // Recovery: the next of its chain is sent a little early, which the margin covers.
      if (!slot.isAlone) store.change((state) => [leaveLate(state, slot, at), undefined]).catch(() => {});
      // Reported with its answer: until then no request follows it.
      else lateAt.set(slot, at);
    },
    /** It was answered with anything but a 429. */
    answered(slot: Slot): void {
      if (!slot.isAlone) return;
      const late = lateAt.get(slot);
      if (!slot.isProbe && late === undefined) {
        ended = slot;
        return;
      }
      const over = (state: BudgetState): BudgetState =>
        endAlone(late === undefined ? state : leaveLate(state, slot, late), slot);
      // Recovery: others wait until its time has passed.
      store.change((state) => [over(state), undefined]).catch(() => {});
    },
    /** The service answered 429: every lane pauses. */
    async tooMany(afterMs: number | undefined, slot?: Slot): Promise<void> {
      const refused = { afterMs, pauseCount: slot?.pauseCount, wasAlone: slot?.isAlone === true };
      try {
        await shareRefusal(refused);
      } catch (error) {
        if (!(error instanceof RetryLater)) throw error;
        // Recovery: it is shared before the next slot is taken; until then no request of this process gets a slot.
        unshared = refused;
      }
    },
    /** The highest pause count that this process knows of. */
    pauseCount: () => pauseCount,
    /** Pauses since this process began. */
    pauses: () => pauseCount - (countAtStart ?? pauseCount),
  };
}
