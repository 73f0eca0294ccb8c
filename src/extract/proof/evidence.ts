import type { Instant } from '../../model/instant.ts';
import type { Window } from '../../model/window.ts';
import {
  beginning,
  confirmsNewest,
  founding,
  inOrder,
  insideOf,
  isOfLatest,
  isRoomLeft,
  NARROW_MS,
  needsConfirmation,
  newestOfAll,
  nothingThere,
  type Observation,
  type Stamped,
  type Stretch,
  showsNothingNewer,
  tellsOrder,
} from './answer.ts';
import { allTiesSeen, aroundUnreadable, type Count, type Unreadable } from './counting.ts';

/** What was known before the first answer came. */
export interface Known {
  /** The newest event that was ever seen, unless it was seen to be gone. */
  newestSeen?: Instant | undefined;
  /** Something was proven by an earlier run. */
  isProven?: boolean;
  /** The service refuses every start before this. */
  founded?: Instant | undefined;
  /** Windows that an earlier poll found empty. */
  empty?: readonly Window[];
  /** Nothing younger than this is complete: events arrive late. */
  settleMs: number;
}

/** What became of an answer. */
export type Admission =
  | { kind: 'counts'; line: readonly Stamped[] }
  | { kind: 'empty' | 'unordered' }
  /** Rows that were seen in its inside before are not on it. */
  | { kind: 'contradicts'; missing: readonly Stamped[] };

/** So many rows at either edge of an answer are remembered, to be looked for on later ones. */
const EDGE_ROWS = 6;
const MOST_REMEMBERED = 400;

/** What the answers of one run have shown, as stretches of time and a few rows at their edges: memory does not grow with pages. The
 * default is unproven: an answer that breaks a rule is evidence of nothing. */
export class Evidence {
  readonly #known: Known;
  /** In order, none touching another. */
  #stretches: Stretch[] = [];
  readonly #edges = new Map<string, Remembered>();
  readonly #counts = new Map<Instant, Count[]>();
  #newestSeen: Instant | undefined;
  /** Newest pages that wait to be confirmed. */
  #claims: Observation[] = [];
  /** Claims of one instant whose order another page has told. */
  readonly #told = new Set<Observation>();
  /** Newest rows that two questions agreed on. */
  readonly #agreed = new Set<string>();
  #latest: Observation | undefined;
  #knowsEnd = false;
  #settledThrough = Number.POSITIVE_INFINITY;

  constructor(known: Known) {
    this.#known = known;
    this.#newestSeen = known.newestSeen;
  }

  /** A copy to go on from, for a reading that delivers its rows by itself. */
  fork(): Evidence {
    const copy = new Evidence(this.#known);
    copy.#newestSeen = this.#newestSeen;
    copy.#stretches = [...this.#stretches];
    copy.#knowsEnd = this.#knowsEnd;
    copy.#settledThrough = this.#settledThrough;
    for (const [id, row] of this.#edges) copy.#edges.set(id, { ...row });
    return copy;
  }

  /** Takes an answer in, if it agrees with what is known. */
  admit(answer: Observation): Admission {
    const line = inOrder(answer);
    if (line === undefined) return { kind: 'unordered' };
    const inside = insideOf(line);
    const missing = inside ? this.#missingFrom(answer, inside) : [];
    if (missing.length > 0) return { kind: 'contradicts', missing };
    if (isOfLatest(answer)) this.#latest = answer;
    this.#confirmClaims(answer);
    if (line.length === 0) return { kind: 'empty' };
    if (inside) this.#add(inside, answer);
    const first = this.#known.founded === undefined ? undefined : founding(answer, this.#known.founded);
    if (first) this.#addBeginning(first, answer, line[0]?.at);
    this.#takeNewest(answer, line);
    this.#remember(answer, line);
    return { kind: 'counts', line };
  }

  /** RULE agreement. A row that was seen stays known until two questions with other bounds have not shown it where it should be. */
  #missingFrom(answer: Observation, { after, before }: Stretch): Stamped[] {
    const shown = new Set(answer.rows.map(({ id }) => id));
    const missing: Stamped[] = [];
    for (const [id, known] of this.#edges) {
      if (known.at <= after || known.at >= before || shown.has(id)) continue;
      if (known.missedBy !== undefined && known.missedBy !== boundsOf(answer)) this.#edges.delete(id);
      else {
        known.missedBy = boundsOf(answer);
        missing.push({ id, at: known.at });
      }
    }
    return missing;
  }

  /** Waits for its confirmation where it needs one; a row that is known and does not show is believed gone by two questions that agree on it. */
  #takeNewest(answer: Observation, line: readonly Stamped[]): void {
    const newest = newestOfAll(answer, line, undefined);
    if (!newest) return;
    const isStale = newestOfAll(answer, line, this.#newestSeen) === undefined;
    const isSame = (claim: Observation): boolean => inOrder(claim)?.at(-1)?.id === line.at(-1)?.id;
    const isAgreed = this.#claims.some((claim) => isSame(claim) && this.#isConfirmed(claim, answer));
    if (isAgreed) this.#agreed.add(line.at(-1)?.id ?? '');
    if ((isAgreed && this.#isQuietSince(line, answer)) || !(isStale || needsConfirmation(answer, this.isNew))) {
      this.#knowsEnd = true;
      this.#add(newest, answer);
    } else {
      this.#claims.push(answer);
    }
  }

  /** A question for the latest hours that shows nothing newer confirms what an older one claimed. */
  #confirmClaims(answer: Observation): void {
    for (const claim of this.#claims) {
      const line = inOrder(claim) ?? [];
      const newest = newestOfAll(claim, line, this.#newestSeen);
      const id = line.at(-1)?.id ?? '';
      if (tellsOrder(claim, answer)) this.#told.add(claim);
      if (this.#isConfirmed(claim, answer)) this.#agreed.add(id);
      if (!newest || !this.#agreed.has(id) || !this.#isQuietSince(line, answer)) continue;
      this.#knowsEnd = true;
      this.#add(newest, claim);
    }
  }

  #isConfirmed(claim: Observation, answer: Observation): boolean {
    return confirmsNewest(claim, answer, this.isNew, this.#told.has(claim));
  }

  /** On a stream that is new, a newest row that is old has to be so for a question of the latest hours, too. */
  #isQuietSince(line: readonly Stamped[], { answeredAt }: Observation): boolean {
    const newest = line.at(-1)?.at ?? Number.NEGATIVE_INFINITY;
    if (!this.isNew || newest >= answeredAt - NARROW_MS) return true;
    const latest = this.#latest;
    return latest !== undefined && (isRoomLeft(latest) || showsNothingNewer(latest, newest));
  }

  #remember({ answeredAt }: Observation, line: readonly Stamped[]): void {
    const newest = Math.max(...line.map(({ at }) => (at <= answeredAt ? at : Number.NEGATIVE_INFINITY)));
    if (newest > (this.#newestSeen ?? Number.NEGATIVE_INFINITY)) {
      this.#newestSeen = newest;
      // What was claimed to be the newest before is not.
      this.#claims = this.#claims.filter((claim) => (inOrder(claim)?.at(-1)?.at ?? newest) >= newest);
    }
    const edges = line.length <= 2 * EDGE_ROWS ? line : [...line.slice(0, EDGE_ROWS), ...line.slice(-EDGE_ROWS)];
    for (const { id, at } of edges) {
      this.#edges.delete(id);
      this.#edges.set(id, { at, missedBy: undefined });
    }
    for (const id of this.#edges.keys()) {
      if (this.#edges.size <= MOST_REMEMBERED) break;
      this.#edges.delete(id);
    }
  }

  /** Two answers from different starts that may show the beginning of all history, and one for what lies before it. */
  admitBeginning(one: Observation, other: Observation, before: Observation): void {
    const stretch = beginning(one, other, before);
    if (stretch) this.#addBeginning(stretch, one, inOrder(one)?.[0]?.at);
  }

  /** Nothing lies before the first row, unless a row from there is known. */
  #addBeginning(stretch: Stretch, answer: Observation, first = stretch.after): void {
    if (this.#seen(({ at }) => at > stretch.after && at < first).length === 0) this.#add(stretch, answer);
  }

  /** A pass through the rows of one instant. Returns whether they are all known by now. */
  admitCount(at: Instant, count: Count): boolean {
    const passes = [...(this.#counts.get(at) ?? []), count];
    this.#counts.set(at, passes);
    const isLast = this.#knowsEnd && this.#stretches.at(-1)?.after === at;
    if (!allTiesSeen(passes, isLast)) return false;
    // RULE settled, for what was counted: a row of this instant may still arrive.
    if (passes.some(({ answeredAt }) => at >= answeredAt - this.#known.settleMs)) return false;
    this.#counts.delete(at);
    this.#close(at);
    return true;
  }

  /** Answers that were all empty. */
  admitNothing(answers: readonly Observation[]): void {
    if (this.#stretches.length > 0 || this.#edges.size > 0 || this.#newestSeen !== undefined) return;
    for (const stretch of nothingThere(answers, this.#known.empty ?? [])) {
      for (const answer of answers) this.#add(stretch, answer);
    }
  }

  admitUnreadable(tried: Unreadable): boolean {
    const stretch = aroundUnreadable(tried);
    if (stretch) this.#add(stretch, tried.before[0]);
    return stretch !== undefined;
  }

  /** RULE settled. An answer says nothing of what is younger than its own clock less the settle time: events arrive late. */
  #add({ after, before: shown }: Stretch, { answeredAt }: Observation): void {
    const settled = answeredAt - this.#known.settleMs;
    if (shown > settled) this.#settledThrough = settled;
    const before = Math.min(shown, settled);
    if (after >= before) return;
    // RULE overlap. Stretches join where their insides overlap. Two that only touch leave the instant between them open.
    const apart = this.#stretches.filter((each) => each.before <= after || each.after >= before);
    const met = this.#stretches.filter((each) => each.before > after && each.after < before);
    const joined = {
      after: Math.min(after, ...met.map((each) => each.after)),
      before: Math.max(before, ...met.map((each) => each.before)),
    };
    this.#stretches = [...apart, joined].sort((a, b) => a.after - b.after);
  }

  /** Every row of this instant is known: the stretches on both sides of it are one. */
  #close(at: Instant): void {
    const left = this.#stretches.find(({ before }) => before === at);
    const right = this.#stretches.find(({ after }) => after === at);
    const apart = this.#stretches.filter((each) => each !== left && each !== right);
    const closed = { after: left?.after ?? at - CLOSED_MS, before: right?.before ?? at + CLOSED_MS };
    this.#stretches = [...apart, closed].sort((a, b) => a.after - b.after);
  }

  /** How far everything from `start` on is known; undefined where nothing is. */
  through(start: Instant): Instant | undefined {
    return this.around(start)?.before;
  }

  /** The stretch that an instant lies in. */
  around(at: Instant): Stretch | undefined {
    return this.#stretches.find(({ after, before }) => after < at && at < before);
  }

  /** Whether nothing was proven before this run: what this service does with a question is not known at all. */
  get isNew(): boolean {
    return this.#known.newestSeen === undefined || !this.#known.isProven;
  }

  /** Nothing behind this can be proven by the answers so far. */
  get settledThrough(): Instant {
    return this.#settledThrough;
  }

  /** Whether an answer has shown where everything ends. */
  get knowsEnd(): boolean {
    return this.#knowsEnd;
  }

  /** The nearest stretch that begins at or behind an instant: what a walk from there can be closed by. */
  nextFrom(at: Instant): Instant | undefined {
    return this.#stretches.find(({ after }) => after >= at)?.after;
  }

  /** The stretch that ends at an instant. */
  endingAt(at: Instant): Stretch | undefined {
    return this.#stretches.find(({ before }) => before === at);
  }

  /** Times of rows that were seen before an instant, nearest first, a few. */
  seenBefore(at: Instant): Instant[] {
    return this.#seen((row) => row.at < at).sort((a, b) => b - a);
  }

  /** Times of rows that were seen after an instant, nearest first, a few. */
  seenAfter(at: Instant): Instant[] {
    return this.#seen((row) => row.at > at).sort((a, b) => a - b);
  }

  #seen(isWanted: (row: Remembered) => boolean): Instant[] {
    return [...new Set([...this.#edges.values()].filter(isWanted).map(({ at }) => at))];
  }
}

interface Remembered {
  at: Instant;
  /** The question that did not show it. */
  missedBy: string | undefined;
}

/** The finest grain of an instant. */
export const CLOSED_MS = 0.001;

const boundsOf = ({ query }: Observation): string =>
  `${query.order} ${query.start} ${query.end} ${query.limit} ${query.page}`;
