import { STREAM_NAMES, type StreamName } from '../model/streams.ts';
import { DAY_MS, startOfDay } from '../model/window.ts';
import { createGenerator } from './generate/events.ts';
import { generateLinks } from './generate/links.ts';
import { firstAt } from './listing.ts';
import type { Random } from './random.ts';
import type { Customer, Link, NewEvent, StoredEvent } from './types.ts';

export interface WorldOptions {
  random: Random;
  now: number;
  days: number;
  rows: Record<StreamName, number>;
}

/** The workspace: its links, its customers, its events. */
export interface World {
  links: Link[];
  customers: Customer[];
  store: Store;
  historyStart: number;
  /** Makes an event that is not in the store yet. */
  make(stream: StreamName, at: number): NewEvent;
  /** Stores events, and moves the counters of their links. */
  put(events: readonly NewEvent[]): StoredEvent[];
}

export function createWorld({ random, now, days, rows }: WorldOptions): World {
  const historyStart = now - days * DAY_MS;
  const store = createStore();
  const links = generateLinks(random, now, historyStart);
  const customers: Customer[] = [];
  const generator = createGenerator({
    random,
    links,
    customers,
    clickBefore(at) {
      const index = store.lowerBound('clicks', at) - 1 - random.int(0, 20);
      return store.all('clicks')[Math.max(index, 0)];
    },
  });

  const put = (events: readonly NewEvent[]): StoredEvent[] => {
    for (const event of events) count(event);
    return store.insert(events);
  };

  let begin = historyStart;
  for (const stream of STREAM_NAMES) {
    const times = Array.from({ length: rows[stream] }, () => begin + Math.floor(random.next() * (now - begin)));
    // In order of time: a customer's first sale is the new one, the later ones are recurring.
    const [first] = put(times.sort((a, b) => a - b).map((at) => generator.event(stream, at)));
    // No lead before the first click and no sale before the first lead; leads and sales stand on whole seconds.
    if (first) begin = Math.min(Math.ceil(first.at / 1000) * 1000 + 1000, now);
  }
  return { links, customers, store, historyStart, make: generator.event, put };
}

function count({ stream, at, click, sale }: NewEvent): void {
  const { link } = click;
  if (stream === 'clicks') {
    link.clicks += 1;
    link.lastClicked = Math.max(link.lastClicked ?? 0, at);
  } else if (stream === 'leads') link.leads += 1;
  else if (sale) {
    link.sales += 1;
    link.saleAmount += sale.amount;
    if (sale.first) link.conversions += 1;
  }
  link.updatedAt = Math.max(link.updatedAt, at);
}

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

function createStore(): Store {
  const lists: Record<StreamName, StoredEvent[]> = { clicks: [], leads: [], sales: [] };
  let arrivals = 0;

  const lowerBound = (stream: StreamName, at: number): number => firstAt(lists[stream], at);

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

/**
 * A history that ends with yesterday and is the same whenever the sandbox is started today. Ended at the very moment of the start, every
 * restart would show the same ids at other times, and a second sync would rightly call every row changed.
 */
export function untilToday(seed: number): { seed: number; historyEnd: number } {
  const today = startOfDay(Date.now());
  return { seed: seed + today / DAY_MS, historyEnd: today };
}
