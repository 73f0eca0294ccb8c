import type { StreamName } from '../../model/streams.ts';
import type { Random } from './random.ts';
import type { NewEvent } from './types.ts';
import type { World } from './world.ts';

/** Bounds the arrivals that are generated at once after a long pause. */
const MOST_AT_ONCE = 50_000;

/** Events that happen while the sandbox runs. There is no timer: they are generated on reads. */
export function createArrivals(
  world: World,
  random: Random,
  { perSecond, startedAt, latenessMs }: { perSecond: number; startedAt: number; latenessMs(): number },
) {
  let hidden: { event: NewEvent; visibleAt: number }[] = [];
  let happenedUntil = startedAt;

  const streamOf = (roll: number): StreamName => (roll < 0.8 ? 'clicks' : roll < 0.95 ? 'leads' : 'sales');

  /** Adds new events; with lateness they become visible later. */
  const take = (events: readonly NewEvent[], now: number, times: readonly number[] = []): void => {
    const late = events.map((event, i) => ({ event, visibleAt: (times[i] ?? now) + latenessMs() }));
    hidden.push(...late.filter(({ visibleAt }) => visibleAt > now));
    world.put(late.filter(({ visibleAt }) => visibleAt <= now).map(({ event }) => event));
  };

  return {
    take,
    waiting: (): number => hidden.length,
    /** Generates the events that are due until now, and stores those that have become visible. */
    catchUp(now: number): void {
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
      const events = times.map((at) => world.make(streamOf(random.next()), at));
      take(events, now, times);
    },
  };
}
