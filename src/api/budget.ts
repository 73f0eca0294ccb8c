import { RetryLater } from '../model/errors.ts';

/** Who goes first: the tail of today, then repairs, then history. */
export const LANES = ['fresh', 'repair', 'backfill'] as const;
export type Lane = (typeof LANES)[number];

/**
 * The rules of a key's budget, as steps from one state to the next: of the row that all processes share, or of a process on its own.
 *
 * **Never one too many.** The requests of a budget of N a second form N chains: each one leaves a second and `MARGIN` after the N-th
 * before it really left. Any second then holds at most one request of each chain, however late single ones were. Only the way
 * to the service can bring two of a chain closer: the margin, 25 ms, is for that.
 *
 * **Spaced.** Even gaps keep the chains apart. Lateness of up to half a gap does not move the plan: counting each request from
 * the one right before it would lose N times as much to timers that fire late.
 *
 * **A 429** pauses every lane once. Then one request goes alone, and with its answer the pace is back. One 429 by chance costs no
 * more than that. Those that follow within ten seconds widen the gaps; each that follows within ten minutes adds `CAUTION` to every distance
 * for half an hour, since the way to this service varies by more than the margin.
 */
export const MARGIN = 0.025;
export const CAUTION = 0.03;
const MOST_CAUTION = 0.12;
const CHANCE_MS = 600_000;
const CAUTIOUS_MS = 1_800_000;

/** The plan's rate as a distance, in milliseconds. */
export const gapOf = (perSecond: number): number => (1000 / perSecond) * (1 + MARGIN);

/** Of budgets above this, so many requests are chained, and the time between two of a chain is shorter. */
const MOST_CHAINS = 16;

const WIDEN = 1.5;
const WIDEST = 4;
const STREAK_MS = 10_000;
/** Where the service names no time: the first pause, doubled by each one of a streak. */
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 16_000;

/** How long the others wait for the answer to a probe: its process may be gone. */
const PROBE_MS = 5000;
/** On a cold connection a request arrives late, with the next one close behind it. The others wait for this handshake only. */
const COLD_MS = 500;
/** A rate that nobody has asked with for this long no longer counts. */
const CAREFUL_MS = 10_000;
/** No slot is taken so long ahead, by however many processes. */
const FAR_AHEAD_MS = 60_000;

/** Times are milliseconds of one clock, 0 for never. */
export interface BudgetState {
  /** Counts the steps. */
  version: number;
  /** The most careful of the rates that were asked with of late. */
  perSecond: number;
  carefulUntil: number;
  /** The plan: when the next one may leave. */
  nextAt: number;
  /** When the last ones left or will leave, the newest first. */
  leftAt: readonly number[];
  /** Counts the slots. */
  slots: number;
  pausedUntil: number;
  /** Rises with every pause. The 429 of a request that left in an earlier era starts no new one. */
  era: number;
  /** Pauses that followed each other closely. */
  streak: number;
  /** Added to every distance, for so long. */
  caution: number;
  cautiousUntil: number;
  /** The next one is a probe. */
  isProbing: boolean;
  aloneUntil: number;
}

export const unused = (perSecond: number): BudgetState => ({
  ...{ version: 0, perSecond, carefulUntil: 0, nextAt: 0, leftAt: [], slots: 0, pausedUntil: 0 },
  ...{ era: 0, streak: 0, caution: 0, cautiousUntil: 0, isProbing: false, aloneUntil: 0 },
});

/** The request may leave at that time. */
export interface Slot {
  at: number;
  number: number;
  era: number;
  /** Nobody else leaves before it is answered: a probe after a pause, or the first on a cold connection. */
  isAlone: boolean;
}

/** Not yet: ask again after so long. */
export interface Wait {
  waitMs: number;
}

type Step<T> = [BudgetState, T];

export function takeSlot(before: BudgetState, rate: number, isCold: boolean, now: number): Step<Slot | Wait> {
  // A clock that was set back: what it said of the future is void.
  const isVoid = (before.leftAt[0] ?? 0) > now + FAR_AHEAD_MS;
  const state = isVoid ? { ...unused(rate), era: before.era, version: before.version } : before;

  const isCareful = rate <= state.perSecond || state.carefulUntil <= now;
  const perSecond = isCareful ? rate : state.perSecond;
  const calmGap = gapOf(perSecond) * (state.cautiousUntil > now ? 1 + state.caution : 1);
  const isStrained = state.streak > 1 && now - state.pausedUntil < STREAK_MS;
  const gap = calmGap * (isStrained ? Math.min(WIDEN ** (state.streak - 1), WIDEST) : 1);

  // Neither for the end of a pause nor for the answer to a probe is a slot taken ahead: both may take longer.
  if (state.pausedUntil > now) return [state, { waitMs: state.pausedUntil - now }];
  if (state.aloneUntil > now) return [state, { waitMs: Math.min(state.aloneUntil - now, gap / 4) }];

  const chains = Math.min(Math.max(Math.floor(perSecond), 1), MOST_CHAINS);
  const chainFreeAt = (state.leftAt[chains - 1] ?? 0) + calmGap * chains;
  const at = Math.max(state.nextAt, chainFreeAt, now);
  // Nor are wide gaps: each of many processes would hold one for later, and keep all of them slow long after the strain.
  if (isStrained && at > now + gap) return [state, { waitMs: at - gap - now }];
  const slot = { at, number: state.slots + 1, era: state.era, isAlone: state.isProbing || isCold };
  const taken = changed(state, {
    ...{ perSecond, carefulUntil: isCareful ? now + CAREFUL_MS : state.carefulUntil },
    ...{ slots: slot.number, leftAt: [at, ...state.leftAt].slice(0, MOST_CHAINS), isProbing: false },
    nextAt: (at - state.nextAt > gap / 2 ? at : state.nextAt) + gap,
    aloneUntil: slot.isAlone ? at + (state.isProbing ? PROBE_MS : COLD_MS) : 0,
  });
  return [taken, slot];
}

const changed = (state: BudgetState, change: Partial<BudgetState>): BudgetState => ({
  ...{ ...state, ...change },
  version: state.version + 1,
});

/** A request left later than its slot: the next of its chain is counted from when it really did, and none is close behind. */
function leaveLate(state: BudgetState, { number }: Slot, at: number): Step<void> {
  const leftAt = state.leftAt.map((left, i) => (i === state.slots - number ? Math.max(left, at) : left));
  const nextAt = Math.max(state.nextAt, at + gapOf(state.perSecond) / 2);
  return [changed(state, { leftAt, nextAt }), undefined];
}

/** The request that went alone was answered: the others may go. */
const endAlone = (state: BudgetState, { era }: Slot): Step<void> => [
  era === state.era ? changed(state, { aloneUntil: 0 }) : state,
  undefined,
];

interface TooManyRequests {
  afterMs: number | undefined;
  /** Without one it is news from elsewhere. */
  era: number | undefined;
  /** It went alone: somebody else uses the key, and more distance would not help. */
  wasAlone: boolean;
}

/** One pause for all. A 429 of a request that left in an earlier era belongs to the pause that ended that era. */
function pauseAll(
  state: BudgetState,
  { afterMs, era = state.era, wasAlone }: TooManyRequests,
  now: number,
): Step<number> {
  const isPaused = now < state.pausedUntil;
  const isNew = !isPaused && era >= state.era;
  if (!isPaused && !isNew) return [state, state.era];
  const sinceLast = now - state.pausedUntil;
  const streak = isNew ? (sinceLast < STREAK_MS ? state.streak + 1 : 1) : state.streak;
  const pauseMs = afterMs ?? Math.min(FIRST_PAUSE_MS * 2 ** (streak - 1), LONGEST_PAUSE_MS);
  const paused = changed(state, { streak, pausedUntil: Math.max(state.pausedUntil, now + pauseMs) });
  if (!isNew) return [paused, state.era];
  const began = { ...paused, era: state.era + 1, isProbing: true, aloneUntil: 0 };
  if (wasAlone || sinceLast > CHANCE_MS) return [began, began.era];
  const caution = Math.min((state.cautiousUntil > now ? state.caution : 0) + CAUTION, MOST_CAUTION);
  return [{ ...began, caution, cautiousUntil: now + CAUTIOUS_MS }, began.era];
}

/** Where a budget's state is kept. */
export interface BudgetStore {
  /** Now, on the clock that the state is kept by, as well as this process can tell. */
  now(): number;
  /** One atomic step. What it did is counted in `budget_use`. */
  change<T>(step: (state: BudgetState, now: number) => Step<T>, counted?: Lane | 'too_many'): Promise<T>;
}

/** The state of a process on its own, where there is no database to share it through. */
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
export interface Budget {
  now(): number;
  take(lane: Lane, isCold: boolean): Promise<Slot | Wait>;
  /** The request was sent, perhaps later than its slot. */
  left(slot: Slot): void;
  /** It was answered with anything but a 429. */
  answered(slot: Slot): void;
  /** The service said 429: a pause for every lane. */
  tooMany(afterMs: number | undefined, slot?: Slot): Promise<void>;
  /** The newest era that this process knows of. */
  era(): number;
  /** Pauses since this process began. */
  pauses(): number;
}

/** A request that leaves later than this is reported late. */
const LATE_MS = 5;

export function createBudget(perSecond: number, store: BudgetStore = createOwnStore(perSecond)): Budget {
  /** A 429 that could not be told to the others yet. */
  let untold: TooManyRequests | undefined;
  let firstEra: number | undefined;
  let era = 0;

  function seen(now: number): void {
    firstEra ??= now;
    era = Math.max(era, now);
  }

  async function tell(refused: TooManyRequests): Promise<void> {
    seen(await store.change((state, now) => pauseAll(state, refused, now), 'too_many'));
  }

  return {
    now: store.now,
    async take(lane, isCold) {
      if (untold) await tell(untold);
      untold = undefined;
      const taking = (state: BudgetState, now: number): Step<Slot | Wait> => {
        seen(state.era);
        return takeSlot(state, perSecond, isCold, now);
      };
      return store.change(taking, lane);
    },
    left(slot) {
      const at = store.now();
      // Recovery: none needed. The next of its chain leaves a little early, and the margin is for that.
      if (at - slot.at > LATE_MS) store.change((state) => leaveLate(state, slot, at)).catch(() => {});
    },
    answered(slot) {
      // Recovery: the others wait until its time has passed.
      if (slot.isAlone) store.change((state) => endAlone(state, slot)).catch(() => {});
    },
    async tooMany(afterMs, slot) {
      const refused = { afterMs, era: slot?.era, wasAlone: slot?.isAlone === true };
      try {
        await tell(refused);
      } catch (error) {
        if (!(error instanceof RetryLater)) throw error;
        // Recovery: it is told before anything else is asked for. Until then nobody of this process gets a slot.
        untold = refused;
      }
    },
    era: () => era,
    pauses: () => era - (firstEra ?? era),
  };
}
