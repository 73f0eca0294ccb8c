import { STREAM_NAMES, type StreamName } from '../../model/streams.ts';
import { DAY_MS, startOfDay } from '../../model/window.ts';
import { firstAt } from '../listing.ts';
import {
  AGENTS,
  CURRENCIES,
  FIRST_NAMES,
  generateLinks,
  LAST_NAMES,
  LEAD_NAMES,
  PLACES,
  PLANS,
  PROCESSORS,
  REFERERS,
  SALE_NAMES,
  TRIGGERS,
} from './links.ts';
import type { Random } from './random.ts';
import type { Click, Customer, Json, Link, NewEvent, Place, StoredEvent } from './types.ts';

interface WorldOptions {
  random: Random;
  now: number;
  days: number;
  rows: Record<StreamName, number>;
}

export type World = ReturnType<typeof createWorld>;

export function createWorld({ random, now, days, rows }: WorldOptions) {
  const historyStart = now - days * DAY_MS;
  const store = createStore();
  const links = generateLinks(random, now, historyStart);
  const customers: Customer[] = [];
  const make = createGenerator({
    random,
    links,
    customers,
    clickBefore(at) {
      const clicks = store.all('clicks');
      return clicks[Math.max(firstAt(clicks, at) - 1 - random.int(0, 20), 0)];
    },
  });

  /** Stores events, and updates the counters of their links. */
  const put = (events: readonly NewEvent[]): StoredEvent[] => {
    for (const event of events) count(event);
    return store.insert(events);
  };

  let begin = historyStart;
  for (const stream of STREAM_NAMES) {
    const times = Array.from({ length: rows[stream] }, () => begin + Math.floor(random.next() * (now - begin)));
    // Ordered by time, because a customer's first sale is new, and the later ones are recurring.
    const [first] = put(times.sort((a, b) => a - b).map((at) => make(stream, at)));
    // No lead comes before the first click and no sale before the first lead; leads and sales are at whole seconds.
    if (first) begin = Math.min(Math.ceil(first.at / 1000) * 1000 + 1000, now);
  }
  return { links, customers, store, historyStart, make, put };
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

/** From this many events on, one sort is cheaper than inserting each event. */
const BULK = 64;

/** The events of the three streams, each sorted by time and then by arrival, so that a window is two binary searches. */
function createStore() {
  const lists: Record<StreamName, StoredEvent[]> = { clicks: [], leads: [], sales: [] };
  let arrivals = 0;

  /** Inserts a new arrival after all events of the same instant. */
  const place = (event: StoredEvent): void => {
    const list = lists[event.stream];
    let index = firstAt(list, event.at);
    while (list[index]?.at === event.at) index += 1;
    list.splice(index, 0, event);
  };

  return {
    all: (stream: StreamName): StoredEvent[] => lists[stream],
    insert(events: readonly NewEvent[]): StoredEvent[] {
      const stored = events.map((event): StoredEvent => ({ ...event, order: arrivals++ }));
      if (stored.length < BULK) for (const event of stored) place(event);
      else {
        for (const event of stored) lists[event.stream].push(event);
        for (const list of Object.values(lists)) list.sort((a, b) => a.at - b.at || a.order - b.order);
      }
      return stored;
    },
  };
}

/**
 * Ends the history with yesterday, so that it is the same whenever the sandbox is started today. If it ended at the start, a restart
 * would return the same ids at other times, and a second sync would rightly count every row as changed.
 */
export function untilToday(seed: number): { seed: number; historyEnd: number } {
  const today = startOfDay(Date.now());
  return { seed: seed + today / DAY_MS, historyEnd: today };
}

interface GeneratorParts extends Pick<WorldOptions, 'random'> {
  links: readonly Link[];
  customers: Customer[];
  /** The newest stored click that is not after the instant, a few back: leads follow their click closely. */
  clickBefore(at: number): StoredEvent | undefined;
}

const wholeSecond = (at: number): number => Math.floor(at / 1000) * 1000;

/** Leads refer to an earlier click, sales to a customer who had a lead. */
function createGenerator({ random, links, customers, clickBefore }: GeneratorParts) {
  const click = (at: number): Click => ({
    ...random.pickSkewed(REFERERS),
    id: random.id('clk_'),
    at,
    link: random.pickSkewed(links),
    place: random.pickSkewed(PLACES),
    agent: random.pickSkewed(AGENTS),
    trigger: random.pick(TRIGGERS),
    ip: `203.0.113.${random.int(1, 254)}`,
  });

  function customer(at: number, from: Click): Customer {
    const first = random.pick(FIRST_NAMES);
    const last = random.pick(LAST_NAMES);
    const created: Customer = {
      id: random.id('cus_'),
      externalId: `user-${customers.length + 1}`,
      name: random.chance(0.8) ? `${first} ${last}` : null,
      email: `customer${customers.length + 1}@example.com`,
      country: from.place.country,
      createdAt: at,
      click: from,
      purchases: 0,
    };
    customers.push(created);
    return created;
  }

  const made = (stream: StreamName, at: number, who: Customer, from: Click, names: readonly string[]): NewEvent => ({
    stream,
    at,
    id: random.id(stream === 'leads' ? 'evt_lead_' : 'evt_sale_'),
    click: from,
    name: random.pickSkewed(names),
    metadata: metadata(random, from.place),
    customer: who,
  });

  function lead(at: number): NewEvent {
    const from = clickBefore(at)?.click ?? click(at);
    const known = customers.length > 0 && random.chance(0.2) ? random.pick(customers) : undefined;
    return made('leads', at, known ?? customer(at, from), from, LEAD_NAMES);
  }

  function sale(at: number): NewEvent {
    const who = earlierCustomer(at) ?? customer(at, clickBefore(at)?.click ?? click(at));
    who.purchases += 1;
    return {
      ...made('sales', at, who, who.click, SALE_NAMES),
      sale: {
        amount: random.int(5, 900) * 100 - 1,
        invoiceId: random.id('in_'),
        paymentProcessor: random.pickSkewed(PROCESSORS),
        currency: random.pickSkewed(CURRENCIES),
        first: who.purchases === 1,
      },
    };
  }

  /** A few random picks usually find one, since most customers exist at the time of most sales; else the first customer is used. */
  function earlierCustomer(at: number): Customer | undefined {
    for (let tries = 0; tries < 8 && customers.length > 0; tries++) {
      const who = random.pick(customers);
      if (who.createdAt <= at) return who;
    }
    return customers.find((who) => who.createdAt <= at) ?? customers[0];
  }

  return (stream: StreamName, at: number): NewEvent => {
    if (stream === 'leads') return lead(wholeSecond(at));
    if (stream === 'sales') return sale(wholeSecond(at));
    const made = click(at);
    return { stream, at, id: made.id, click: made };
  };
}

function metadata(random: Random, place: Place): Json {
  if (random.chance(0.2)) return null;
  return { plan: random.pick(PLANS), seats: random.int(1, 50), market: place.country.toLowerCase() };
}
