import { STREAM_NAMES, type StreamName } from '../model/streams.ts';
import { createGenerator } from './generate/events.ts';
import { generateLinks } from './generate/links.ts';
import type { Random } from './random.ts';
import { createStore, type Store } from './store.ts';
import type { Customer, Link, NewEvent, StoredEvent } from './types.ts';

const DAY = 86_400_000;

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
  const historyStart = now - days * DAY;
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
