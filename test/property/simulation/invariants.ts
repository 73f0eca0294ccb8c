import type { Advance } from '../../../src/cursor/ledger.ts';
import { toIso } from '../../../src/model/instant.ts';
import { describeWindow, holds } from '../../../src/model/window.ts';
import type { MemorySink } from '../../support/memory-sink.ts';
import { flaps } from '../../support/odd-service/listing.ts';
import { wordAndDuration } from '../../support/odd-service/traits.ts';
import { type SimulatedEvent, shownAt } from '../../support/simulated-service.ts';
import { isKnownUnsound } from './drawn-traits.ts';
import type { Scenario } from './scenario.ts';

/** The largest worlds have some hundred rows; a correct run on the worst service stays far below. */
const MOST_REQUESTS = 5000;

export class InvariantBroken extends Error {
  /** How many events are missing. */
  readonly lost: number;
  constructor(message: string, lost = 0) {
    super(message);
    this.lost = lost;
  }
}

/** Invariants after every commit, for any service. docs/internals/extraction.md uses the same names. */
export function createInvariants({ service, since, policy }: Scenario, sink: MemorySink) {
  let started = 0;
  let startedByUs = 0;
  /** The start of the previous run. */
  let before = 0;
  let floor = since;
  let requests = 0;
  let watermark: number | undefined;
  let proven = new Set<string>();

  const shown = (event: SimulatedEvent): number => shownAt(event, service.traits);
  // Any reader may miss a flapping row, but not the rows shifted by it.
  const first = service.traits;
  const isVisible = (event: SimulatedEvent): boolean =>
    event.goneAt === undefined && !flaps(event, first, service.seed) && !isBehindRetention(event);
  /** Where the service silently moves an old start up, or has nothing older, no query shows earlier rows. */
  const isBehindRetention = ({ at }: SimulatedEvent): boolean => {
    const { retention } = service.traits;
    if (!retention) return false;
    const { word, ms } = wordAndDuration(retention, '30d');
    const oldest = service.now() - ms;
    // A service that shows nothing instead is detected by recent rows.
    const showsNothing = word === 'empty' && service.store.alive().every((event) => event.at < oldest);
    return (word === 'clamp' || showsNothing) && at < oldest;
  };
  /** When every answer can include it. */
  const arrival = ({ arrivedAt }: SimulatedEvent): number => arrivedAt + (service.traits.replicaLag ?? 0);
  const lost = (must: (event: SimulatedEvent) => boolean): SimulatedEvent[] =>
    service.store.everVisible().filter((event) => isVisible(event) && !sink.rows.has(event.id) && must(event));
  const check = (name: string, missing: readonly SimulatedEvent[], why: string): void => {
    if (missing.length === 0) return;
    const events = missing
      .slice(0, 5)
      .map((event) => `${event.id}@${toIso(shown(event))} (arrived ${toIso(event.arrivedAt)})`);
    throw new InvariantBroken(`${name}: ${missing.length} missing ${why}: ${events.join(', ')}`, missing.length);
  };

  return {
    runStarts() {
      requests = 0;
      before = Math.min(started, startedByUs);
      started = service.now();
      startedByUs = service.ourNow();
      floor = sink.cursor()?.completeThrough ?? since;
    },

    /** Before every request. */
    beforeRequest() {
      requests += 1;
      if (requests > MOST_REQUESTS)
        throw new InvariantBroken(`I8 bounded: more than ${MOST_REQUESTS} requests in one run`);
    },

    afterCommit({ spans }: Advance) {
      const through = sink.cursor()?.completeThrough;
      if (watermark !== undefined && (through ?? 0) < watermark) {
        throw new InvariantBroken(`I3 watermark never moves back: from ${toIso(watermark)} to ${toIso(through ?? 0)}`);
      }
      watermark = through;
      if (through !== undefined && through > service.ourNow() && !isKnownUnsound('clockSkew')) {
        throw new InvariantBroken(`I7 no promise about the future: complete through ${toIso(through)}`);
      }

      for (const span of spans.filter(({ certified }) => certified)) {
        const wasThere = (event: SimulatedEvent): boolean => arrival(event) < started && holds(span, shown(event));
        check('I4 certified is complete', lost(wasThere), `from certified ${describeWindow(span)}`);
      }

      // An event that is not backdated arrives within the settle time, so its window cannot be proven before.
      const isTimely = (event: SimulatedEvent): boolean =>
        arrival(event) < event.at + policy.settleMs || arrival(event) < started;
      const isOld = (event: SimulatedEvent): boolean => shown(event) >= since && shown(event) < (through ?? since);
      const isBackdated = (event: SimulatedEvent): boolean => arrival(event) >= event.at + policy.settleMs;
      check(
        'I1 behind the watermark',
        lost((e) => isTimely(e) && isOld(e) && !isBackdated(e)),
        'behind the watermark',
      );

      const ledger = sink.ledger();
      const overlapping = ledger.some((entry, i) => entry.start < (ledger[i - 1]?.end ?? Number.NEGATIVE_INFINITY));
      if (overlapping) throw new InvariantBroken('I2 unique: two windows of the ledger overlap');
      for (const id of proven) {
        if (!sink.rows.has(id)) throw new InvariantBroken(`I2 kept: ${id} was delivered and is gone`);
      }
      proven = new Set(sink.rows.keys());
    },

    /** After a run; `sound` if it neither failed nor left anything uncertified. */
    runEnds(sound: boolean) {
      const through = sink.cursor()?.completeThrough;
      if (watermark !== undefined && (through === undefined || through < watermark)) {
        throw new InvariantBroken('I5 refused keeps: the watermark of the last commit is gone');
      }
      if (!sound || through === undefined) return;
      const isRecent = (event: SimulatedEvent): boolean =>
        arrival(event) < started && shown(event) >= Math.max(since, floor - policy.lookbackMs) && shown(event) < floor;
      check('I1 lookback', lost(isRecent), 'within the lookback after a sound run');
    },

    /** After the service has been calm for days. */
    settled() {
      const through = sink.cursor()?.completeThrough;
      // The slower of the two clocks limits what must be certified.
      let now = Math.min(started, startedByUs) - (service.traits.clockJitter ?? 0);
      // If nothing was ever visible, each poll confirms the previous one.
      if (service.store.everVisible().length === 0) now = Math.min(now, before);
      const reachable = Math.floor(now / 1000) * 1000 - policy.settleMs;
      if (through === undefined || through < reachable) {
        const at = through === undefined ? 'nowhere' : toIso(through);
        throw new InvariantBroken(`I6 comes to rest: complete through ${at}, not ${toIso(reachable)}`);
      }
      check(
        'I6 equals the service',
        lost((event) => shown(event) >= since),
        'after everything calmed down',
      );
      const known = new Set(service.store.everVisible().map((event) => event.id));
      const invented = [...sink.rows.keys()].filter((id) => !known.has(id));
      if (invented.length > 0) throw new InvariantBroken(`I2 unique: invented ${invented.slice(0, 5).join(', ')}`);
    },
  };
}
