import type { StreamName } from '../../model/streams.ts';
import type { Random } from '../random.ts';
import type { Click, Customer, Json, Link, NewEvent, Place, StoredEvent } from '../types.ts';
import {
  AGENTS,
  CURRENCIES,
  FIRST_NAMES,
  LAST_NAMES,
  LEAD_NAMES,
  PLACES,
  PLANS,
  PROCESSORS,
  REFERERS,
  SALE_NAMES,
  TRIGGERS,
} from './words.ts';

export interface Generator {
  /** One new event of the stream at that instant. Leads refer to an earlier click, sales to a customer who had a lead. */
  event(stream: StreamName, at: number): NewEvent;
}

export interface GeneratorParts {
  random: Random;
  links: readonly Link[];
  customers: Customer[];
  /** The newest stored click that is not after the instant, a few back: leads follow their click closely. */
  clickBefore(at: number): StoredEvent | undefined;
}

const wholeSecond = (at: number): number => Math.floor(at / 1000) * 1000;

export function createGenerator({ random, links, customers, clickBefore }: GeneratorParts): Generator {
  function click(at: number): Click {
    const { referer, refererUrl } = random.pickSkewed(REFERERS);
    return {
      id: random.id('clk_'),
      at,
      link: random.pickSkewed(links),
      place: random.pickSkewed(PLACES),
      agent: random.pickSkewed(AGENTS),
      trigger: random.pick(TRIGGERS),
      referer,
      refererUrl,
      ip: `203.0.113.${random.int(1, 254)}`,
    };
  }

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

  function lead(at: number): NewEvent {
    const from = clickBefore(at)?.click ?? click(at);
    const known = customers.length > 0 && random.chance(0.2) ? random.pick(customers) : undefined;
    const who = known ?? customer(at, from);
    return {
      stream: 'leads',
      at,
      id: random.id('evt_lead_'),
      click: from,
      name: random.pickSkewed(LEAD_NAMES),
      metadata: metadata(random, from.place),
      customer: who,
    };
  }

  function sale(at: number): NewEvent {
    const who = earlierCustomer(at) ?? customer(at, clickBefore(at)?.click ?? click(at));
    const from = who.click;
    who.purchases += 1;
    return {
      stream: 'sales',
      at,
      id: random.id('evt_sale_'),
      click: from,
      name: random.pickSkewed(SALE_NAMES),
      metadata: metadata(random, from.place),
      customer: who,
      sale: {
        amount: random.int(5, 900) * 100 - 1,
        invoiceId: random.id('in_'),
        paymentProcessor: random.pickSkewed(PROCESSORS),
        currency: random.pickSkewed(CURRENCIES),
        first: who.purchases === 1,
      },
    };
  }

  /** A few tries find one, as most customers exist by the time of most sales; else the first that there was. */
  function earlierCustomer(at: number): Customer | undefined {
    for (let tries = 0; tries < 8 && customers.length > 0; tries++) {
      const who = random.pick(customers);
      if (who.createdAt <= at) return who;
    }
    return customers.find((who) => who.createdAt <= at) ?? customers[0];
  }

  return {
    event(stream, at) {
      if (stream === 'leads') return lead(wholeSecond(at));
      if (stream === 'sales') return sale(wholeSecond(at));
      const made = click(at);
      return { stream, at, id: made.id, click: made };
    },
  };
}

function metadata(random: Random, place: Place): Json {
  if (random.chance(0.2)) return null;
  return { plan: random.pick(PLANS), seats: random.int(1, 50), market: place.country.toLowerCase() };
}
