import type { StreamName } from '../model/streams.ts';
import type { NewEvent, StoredEvent } from './types.ts';

/** The events of the three streams, each sorted by time and then by arrival, so that a window is two binary searches. */
export interface Store {
  all(stream: StreamName): readonly StoredEvent[];
  /** The index of the first event at or after the instant. */
  lowerBound(stream: StreamName, at: number): number;
  insert(events: readonly NewEvent[]): StoredEvent[];
  remove(stream: StreamName, drop: (event: StoredEvent) => boolean): StoredEvent[];
}

/** From so many events on, one sort is cheaper than finding each its place. */
const BULK = 64;

export function createStore(): Store {
  const lists: Record<StreamName, StoredEvent[]> = { clicks: [], leads: [], sales: [] };
  let arrivals = 0;

  const lowerBound = (stream: StreamName, at: number): number => {
    const list = lists[stream];
    let low = 0;
    let high = list.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((list[middle]?.at ?? Number.POSITIVE_INFINITY) < at) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  /** A new arrival stands after all events of its instant: the first index whose event is later. */
  const place = (event: StoredEvent): void => {
    const list = lists[event.stream];
    let index = lowerBound(event.stream, event.at);
    while (list[index]?.at === event.at) index += 1;
    list.splice(index, 0, event);
  };

  return {
    all: (stream) => lists[stream],
    lowerBound,
    insert(events) {
      const stored = events.map((event): StoredEvent => ({ ...event, order: arrivals++ }));
      if (stored.length < BULK) for (const event of stored) place(event);
      else {
        for (const event of stored) lists[event.stream].push(event);
        for (const list of Object.values(lists)) list.sort((a, b) => a.at - b.at || a.order - b.order);
      }
      return stored;
    },
    remove(stream, drop) {
      const gone: StoredEvent[] = [];
      lists[stream] = lists[stream].filter((event) => {
        if (!drop(event)) return true;
        gone.push(event);
        return false;
      });
      return gone;
    },
  };
}
