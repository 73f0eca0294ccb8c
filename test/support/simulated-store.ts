import type { Instant } from '../../src/model/instant.ts';

export interface SimulatedEvent {
  id: string;
  /** In milliseconds; what is shown may be coarser. */
  at: Instant;
  /** Decides among equal instants, at random: a late event may land anywhere in its tie group. */
  order: number;
  /** Filtered out after limit and offset, as events of deleted links are. */
  hidden: boolean;
  /** Every page that holds it fails. */
  poison: boolean;
  /** Pages that hold it fail above a size. */
  fragile: boolean;
  /** When the service learned of it. */
  arrivedAt: Instant;
  /** When it was deleted, or hidden: from then on nobody can be asked to have it. */
  goneAt: Instant | undefined;
}

/** What the simulated service holds, and the truth about it: events that are gone are still known here. */
export interface SimulatedStore {
  /** In the service's order, hidden and poisoned ones among them. */
  alive(): readonly SimulatedEvent[];
  /** Everything that could ever be seen, gone or not. */
  everVisible(): readonly SimulatedEvent[];
  add(event: SimulatedEvent): void;
  remove(event: SimulatedEvent, now: Instant): void;
  hide(event: SimulatedEvent, now: Instant): void;
}

export function createSimulatedStore(): SimulatedStore {
  const alive: SimulatedEvent[] = [];
  const everVisible: SimulatedEvent[] = [];
  const isBefore = (a: SimulatedEvent, b: SimulatedEvent): boolean =>
    a.at < b.at || (a.at === b.at && a.order < b.order);
  return {
    alive: () => alive,
    everVisible: () => everVisible,
    add(event) {
      let low = 0;
      let high = alive.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        const other = alive[middle];
        if (other && isBefore(other, event)) low = middle + 1;
        else high = middle;
      }
      alive.splice(low, 0, event);
      if (!event.hidden && !event.poison) everVisible.push(event);
    },
    remove(event, now) {
      const index = alive.indexOf(event);
      if (index < 0) return;
      alive.splice(index, 1);
      event.goneAt ??= now;
    },
    hide(event, now) {
      event.hidden = true;
      event.goneAt ??= now;
    },
  };
}
