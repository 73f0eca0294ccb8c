import type { StreamName } from '../model/streams.ts';
import type { Random } from './random.ts';
import type { Traits } from './traits.ts';
import type { NewEvent } from './types.ts';
import type { World } from './world.ts';

const DAY = 86_400_000;
/** After a long pause the service does not choke on its own arrivals. */
const MOST_AT_ONCE = 50_000;

/** Events that happen while the sandbox runs. No timer: whoever looks makes time pass. */
export interface Arrivals {
  /** Lets happen what should have happened until now, and shows what has become visible. */
  catchUp(now: number): void;
  /** Takes in new events; with `lateness` they become visible later. */
  take(events: readonly NewEvent[], now: number): void;
  /** A generated event, backdated if the trait says so. */
  happen(stream: StreamName, at: number): NewEvent;
  /** Events that have happened and are not visible yet. */
  waiting(): readonly NewEvent[];
}

export interface ArrivalsParts {
  world: World;
  random: Random;
  perSecond: number;
  startedAt: number;
  traits(): Traits;
}

export function createArrivals({ world, random, perSecond, startedAt, traits }: ArrivalsParts): Arrivals {
  let hidden: { event: NewEvent; visibleAt: number }[] = [];
  let happenedUntil = startedAt;

  const streamOf = (roll: number): StreamName => (roll < 0.8 ? 'clicks' : roll < 0.95 ? 'leads' : 'sales');

  const happen = (stream: StreamName, at: number): NewEvent => {
    const { backdated = 0 } = traits();
    const back = stream !== 'clicks' && random.chance(backdated) ? random.int(2 * DAY, 400 * DAY) : 0;
    return world.make(stream, at - back);
  };

  const take = (events: readonly NewEvent[], now: number, happenedAt: (index: number) => number = () => now): void => {
    const { lateness = 0 } = traits();
    const late = events.map((event, index) => ({ event, visibleAt: happenedAt(index) + lateness }));
    hidden.push(...late.filter(({ visibleAt }) => visibleAt > now));
    world.put(late.filter(({ visibleAt }) => visibleAt <= now).map(({ event }) => event));
  };

  return {
    happen,
    take: (events, now) => take(events, now),
    waiting: () => hidden.map(({ event }) => event),
    catchUp(now) {
      const due = hidden.filter(({ visibleAt }) => visibleAt <= now);
      if (due.length > 0) {
        hidden = hidden.filter(({ visibleAt }) => visibleAt > now);
        world.put(due.map(({ event }) => event));
      }
      if (perSecond <= 0 || now <= happenedUntil) return;
      const step = 1000 / perSecond;
      const number = Math.min(Math.floor((now - happenedUntil) / step), MOST_AT_ONCE);
      if (number === 0) return;
      const times = Array.from({ length: number }, (_, i) => Math.floor(happenedUntil + (i + 0.5) * step));
      happenedUntil = number === MOST_AT_ONCE ? now : happenedUntil + number * step;
      take(
        times.map((at) => happen(streamOf(random.next()), at)),
        now,
        (index) => times[index] ?? now,
      );
    },
  };
}
