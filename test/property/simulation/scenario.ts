import type { Instant } from '../../../src/model/instant.ts';
import { createRandom, type Random } from '../../../src/sandbox/data/random.ts';
import type { StreamPolicy } from '../../../src/sync/job.ts';
import type { TraitName, Traits } from '../../support/odd-service/traits.ts';
import { DAY, HOUR, MINUTE } from '../../support/sandbox-sync.ts';
import { serviceError } from '../../support/service-error.ts';
import { createSimulatedService, type SimulatedEvent, type SimulatedService } from '../../support/simulated-service.ts';
import { drawOnly, drawTraits } from './drawn-traits.ts';

const MOST_EVENTS = 1500;

/** In most worlds the start is inclusive and the end exclusive. */
const BOUNDS = ['exclusive-end', 'exclusive-end', 'inclusive', 'inclusive', 'exclusive', 'exclusive-start'] as const;

/** The world of a seed: the service's events, its behaviour, and what changes during reading. */
export interface Scenario {
  random: Random;
  service: SimulatedService;
  since: Instant;
  policy: StreamPolicy;
  pageRows: number;
  /** Lets time pass, with its events. */
  idle(ms: number): void;
  /** Ends all failures and changes, and removes rows that no reader could prove. */
  calmDown(): void;
  describe(): string;
}

/** Probabilities of events per request. */
interface Habits {
  live: number;
  late: number;
  bursts: number;
  backdated: number;
  future: number;
  deletes: number;
  deletesAtEdges: number;
  hides: number;
  flaky: number;
  outages: number;
  refusals: number;
}

export interface ScenarioOptions {
  /** These traits instead of random ones. */
  only?: readonly TraitName[] | undefined;
  /** No changes, and no hidden or poisoned rows; the traits stay. */
  steady?: boolean | undefined;
}

export function createScenario(seed: number, options: ScenarioOptions = {}): Scenario {
  const random = createRandom(seed);
  const { steady = false } = options;
  const some = (share: number, most: number): number => (random.chance(share) && !steady ? random.next() * most : 0);
  const start = Date.UTC(2026, 2, 10) + random.int(0, 2 * DAY);
  const service = createSimulatedService({ random, start, seed });
  const widen = random.chance(0.3);
  // On a widening server the page number must stay well below the limit, as it does at 1,000 rows a page.
  const pageRows = widen ? random.int(16, 24) : random.int(8, 20);
  const ms = random.chance(0.5) ? 1 : 1000;
  const traits: Traits = {
    ...(widen && { widen: 'day' as const }),
    bounds: random.pick(BOUNDS),
    ...(ms === 1 && random.chance(0.2) && { timestampForm: 'seconds' as const }),
    ...(random.chance(0.35) && { shuffleTies: true }),
    ...(random.chance(0.2) && { lastPage: 'repeat' as const }),
    ...(random.chance(0.15) && { deepPages: `fail@${random.int(2, 12)}` as const }),
    ...(random.chance(0.1) && { refuseAbove: `500@${random.int(Math.max(6, pageRows >> 1), pageRows)}` as const }),
    ...(random.chance(0.3) && { clockSkew: random.int(-HOUR, HOUR) }),
  };
  const drawn = options.only
    ? drawOnly(options.only, { random, pageRows, roomy: steady })
    : drawTraits({ random, pageRows });
  // If both our clock and the service's are wrong, nothing shows the time.
  if (drawn.clockJitter) delete traits.clockSkew;
  service.traits = steady ? { bounds: traits.bounds, ...drawn } : { ...traits, ...drawn };
  service.slowness = random.chance(0.15) ? random.int(10, 60) : 1;
  const habits: Habits = {
    live: some(0.5, 0.6),
    late: some(0.5, 0.3),
    bursts: some(0.4, 1),
    backdated: some(0.4, 0.1),
    future: some(0.1, 0.03),
    deletes: some(0.4, 0.15),
    deletesAtEdges: some(0.4, 0.3),
    hides: some(0.2, 0.1),
    flaky: some(0.3, 0.3),
    outages: some(0.2, 0.02),
    refusals: some(0.2, 0.02),
  };
  const hiddenShare = some(0.4, 0.3);
  const policy: StreamPolicy = { settleMs: 10 * MINUTE, lookbackMs: 15 * MINUTE, resweepMs: 365 * DAY };
  const historyMs = random.pick([HOUR, DAY, 3 * DAY, 20 * DAY]);
  const since = service.now() - historyMs - random.int(0, HOUR);
  let calm = false;
  let born = 0;
  /** The edges of the last page, in the service's order. */
  let edges: number[] = [];
  let hasBigTies = false;
  let hidesRows = hiddenShare > 0 || habits.hides > 0;
  let deletable = 0;
  let failing: { left: number; status: number } | undefined;

  const add = (at: Instant, more: Partial<SimulatedEvent> = {}): void => {
    born += 1;
    const event: SimulatedEvent = {
      id: `e${born}`,
      at: Math.floor(at / ms) * ms,
      order: random.next(),
      hidden: random.chance(hiddenShare),
      poison: false,
      fragile: false,
      arrivedAt: service.now(),
      goneAt: undefined,
      ...more,
    };
    service.store.add(event);
  };
  const past = (): Instant => since + random.next() * (service.now() - since);
  const anyAlive = (): SimulatedEvent | undefined => {
    const alive = service.store.alive();
    return alive.length === 0 ? undefined : random.pick(alive);
  };
  const removeSome = (events: readonly SimulatedEvent[]): void => {
    for (const event of events) {
      if (deletable <= 0) return;
      deletable -= 1;
      service.store.remove(event, service.now());
    }
  };

  /** Creates the history before the first sync. */
  function populate(): void {
    const rows = random.pick([0, 1, random.int(2, 30), random.int(30, 160)]);
    for (let i = 0; i < rows; i++) add(past(), { arrivedAt: start - DAY });
    for (let i = random.int(0, 4); i > 0; i--) tieGroup(random.int(2, 5));
    hasBigTies = random.chance(0.3) && !steady;
    if (hasBigTies) tieGroup(random.int(pageRows - 1, 3 * pageRows));
    const hasHiddenRun = random.chance(0.2) && !steady;
    if (hasHiddenRun) hiddenRun(past(), random.int(pageRows, 3 * pageRows));
    hidesRows ||= hasHiddenRun;
    if (random.chance(0.15) && !steady) add(past(), { poison: true, hidden: false });
    if (random.chance(0.1) && !steady) add(past(), { poison: true, hidden: false });
    for (let i = Number.parseInt(drawn.fragile ?? '0', 10); i > 0; i--)
      add(past(), { fragile: true, hidden: false, arrivedAt: start - DAY });
    if (rows > 0) add(since + random.int(0, 2) * ms, { arrivedAt: start - DAY });
  }
  function tieGroup(rows: number): void {
    const at = Math.floor(past() / 1000) * 1000;
    for (let i = 0; i < rows; i++) add(at, { arrivedAt: start - DAY });
  }
  function hiddenRun(at: Instant, rows: number): void {
    for (let i = 0; i < rows; i++) add(at + i * ms, { hidden: true, arrivedAt: start - DAY });
  }

  function happen(): void {
    const now = service.now();
    // Where rows are hidden, a service does not lose a quarter of a page between two requests: assumption 4.
    deletable = hidesRows ? pageRows >> 2 : 2 * pageRows;
    // Every request may create events: without a limit, a reader of small pages would never catch up.
    if (born > MOST_EVENTS) return;
    if (random.chance(habits.live)) add(now - random.int(0, 2000));
    // A replica shows it later still: the settle time must cover both.
    const latest = 0.95 * (policy.settleMs - (service.traits.replicaLag ?? 0));
    if (random.chance(habits.late)) add(Math.max(now - random.next() * latest, since));
    if (random.chance(habits.backdated)) {
      const tie = random.chance(0.3) ? anyAlive()?.at : undefined;
      add(tie ?? now - random.next() ** 3 * 90 * DAY);
    }
    if (random.chance(habits.future)) add(now + random.next() * 2 * DAY);
    const victim = random.chance(habits.deletes) ? anyAlive() : undefined;
    if (victim) removeSome([victim]);
    if (random.chance(habits.deletesAtEdges) && edges.length > 0) {
      const first = Math.max(0, random.pick(edges) + random.int(-3, 3));
      removeSome(service.store.alive().slice(first, first + 1 + Math.floor(random.next() ** 3 * deletable)));
    }
    const hidden = random.chance(habits.hides) ? anyAlive() : undefined;
    if (hidden) service.store.hide(hidden, now);
  }

  function fail(tries: number): void {
    if (failing) {
      const { status, left } = failing;
      // A call with six tries outlasts five failures; a refusal is not retried.
      const used = status >= 429 ? tries : 1;
      const lasts = left >= used;
      failing = lasts ? { status, left: left - used } : undefined;
      if (lasts) throw serviceError(status);
    }
    if (random.chance(habits.flaky ** tries)) throw serviceError(random.pick([429, 500, 503]));
    if (random.chance(habits.outages)) failing = { left: random.int(1, 60), status: random.pick([429, 500, 503]) };
    else if (random.chance(habits.refusals)) failing = { left: random.int(1, 5), status: random.pick([401, 403, 422]) };
  }

  service.onRequest = (_query, tries) => {
    if (calm) return;
    happen();
    fail(tries);
  };
  service.onAnswer = (_query, shown) => {
    const alive = service.store.alive();
    const [first, last] = [shown[0], shown.at(-1)];
    edges = first && last ? [alive.indexOf(first), alive.indexOf(last)] : [];
  };
  populate();

  return {
    random,
    service,
    since,
    policy,
    pageRows,
    idle(idleMs) {
      // A known property of a server may change.
      if (widen && !calm && !steady && random.chance(0.1)) {
        service.traits = { ...service.traits, widen: service.traits.widen ? undefined : 'day' };
      }
      for (let step = 0; step < 4; step++) {
        service.pass(idleMs / 4);
        if (calm) continue;
        happen();
        // Several pages at once, so that a poll must read backwards.
        const burst = random.chance(habits.bursts) ? random.int(1, 2 * pageRows) : 0;
        for (let i = 0; i < burst; i++) add(service.now() - random.next() * Math.min(idleMs / 4, 5 * MINUTE));
      }
    },
    calmDown() {
      calm = true;
      failing = undefined;
      // No answer shows both sides of a run of hidden rows longer than a page, and ties with hidden rows cannot be counted:
      // no reader could prove these.
      if (hasBigTies || longestHiddenRun(service.store.alive()) >= pageRows >> 1) {
        for (const event of service.store.alive().filter(({ hidden }) => hidden))
          service.store.remove(event, service.now());
      }
      const hasHidden = service.store.alive().some((event) => event.hidden);
      const shuffleTies = traits.shuffleTies === true && !hasHidden;
      const { retention } = drawn;
      service.traits = { ...traits, shuffleTies, deepPages: undefined, refuseAbove: undefined };
      // Rows that no query showed would later appear as backdated.
      if (retention?.startsWith('clamp')) service.traits.retention = retention;
      const keepsPoison = !hasHidden && !shuffleTies && !hasBigTies && !widen && random.chance(0.5);
      for (const event of service.store.alive().filter(({ poison }) => poison && !keepsPoison)) {
        service.store.remove(event, service.now());
      }
      // After a run of hidden rows at the very end nothing is provable until a row is seen there.
      add(service.now(), { hidden: false });
    },
    describe: () =>
      JSON.stringify({ pageRows, ms, traits: service.traits, habits, hiddenShare, since: new Date(since) }),
  };
}

function longestHiddenRun(events: readonly SimulatedEvent[]): number {
  let [longest, run] = [0, 0];
  for (const { hidden } of events) {
    run = hidden ? run + 1 : 0;
    longest = Math.max(longest, run);
  }
  return longest;
}
