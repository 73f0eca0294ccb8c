import type { Advance } from '../../src/cursor/ledger.ts';
import { believed } from '../../src/extract/service-clock.ts';
import { toIso } from '../../src/model/instant.ts';
import { describeWindow, holds } from '../../src/model/window.ts';
import type { MemorySink } from './memory-sink.ts';
import type { Scenario } from './scenario.ts';
import { shownAt } from './simulated-service.ts';
import type { SimulatedEvent } from './simulated-store.ts';

/** What must hold after every commit, whatever the service does. docs/extraction.md uses the same names. */
export interface Invariants {
  runStarts(): void;
  afterCommit(advance: Advance): void;
  /** At the end of a run; `sound` if it neither failed nor left anything uncertified. */
  runEnds(sound: boolean): void;
  /** After the service has been calm for days. */
  settled(): void;
}

export class InvariantBroken extends Error {
  /** How many events are missing. */
  readonly lost: number;
  constructor(message: string, lost = 0) {
    super(message);
    this.lost = lost;
  }
}

export function createInvariants({ service, since, upkeep }: Scenario, sink: MemorySink): Invariants {
  let started = 0;
  let startedByUs = 0;
  let floor = since;
  let watermark: number | undefined;
  let proven = new Set<string>();

  const shown = (event: SimulatedEvent): number => shownAt(event, service.traits);
  const isVisible = (event: SimulatedEvent): boolean => event.goneAt === undefined;
  const lost = (must: (event: SimulatedEvent) => boolean): SimulatedEvent[] =>
    service.store.everVisible().filter((event) => isVisible(event) && !sink.rows.has(event.id) && must(event));
  const check = (name: string, missing: readonly SimulatedEvent[], why: string): void => {
    if (missing.length === 0) return;
    const events = missing
      .slice(0, 5)
      .map((event) => `${event.id}@${toIso(shown(event))} (born ${toIso(event.bornAt)})`);
    throw new InvariantBroken(`${name}: ${missing.length} missing ${why}: ${events.join(', ')}`, missing.length);
  };

  return {
    runStarts() {
      started = service.now();
      startedByUs = service.ourNow();
      floor = sink.cursor()?.completeThrough ?? since;
    },

    afterCommit({ spans }) {
      const through = sink.cursor()?.completeThrough;
      if (watermark !== undefined && (through ?? 0) < watermark) {
        throw new InvariantBroken(`I3 watermark never moves back: from ${toIso(watermark)} to ${toIso(through ?? 0)}`);
      }
      watermark = through;

      for (const span of spans.filter(({ certified }) => certified)) {
        const wasThere = (event: SimulatedEvent): boolean => event.bornAt < started && holds(span, shown(event));
        check('I4 certified is complete', lost(wasThere), `from certified ${describeWindow(span)}`);
      }

      // An event that is not backdated arrives within the settle time, so its window cannot have been proven before it came.
      const isTimely = (event: SimulatedEvent): boolean =>
        event.bornAt < event.at + upkeep.settleMs || event.bornAt < started;
      const isOld = (event: SimulatedEvent): boolean => shown(event) >= since && shown(event) < (through ?? since);
      const isBackdated = (event: SimulatedEvent): boolean => event.bornAt >= event.at + upkeep.settleMs;
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

    runEnds(sound) {
      const through = sink.cursor()?.completeThrough;
      if (watermark !== undefined && (through === undefined || through < watermark)) {
        throw new InvariantBroken('I5 refused keeps: the watermark of the last commit is gone');
      }
      if (!sound || through === undefined) return;
      const isRecent = (event: SimulatedEvent): boolean =>
        event.bornAt < started && shown(event) >= Math.max(since, floor - upkeep.lookbackMs) && shown(event) < floor;
      check('I1 lookback', lost(isRecent), 'within the lookback after a sound run');
    },

    settled() {
      const through = sink.cursor()?.completeThrough;
      // A service whose clock is far ahead of ours is believed as far as its events show, and at least up to our own clock.
      const now = believed(started, startedByUs, startedByUs);
      const reachable = Math.floor(now / 1000) * 1000 - upkeep.settleMs;
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
