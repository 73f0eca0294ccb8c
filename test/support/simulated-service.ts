import type { EventsQuery, Page } from '../../src/api/client.ts';
import type { EventsApi, PageOptions } from '../../src/api/events-api.ts';
import type { Flatten } from '../../src/model/flatten.ts';
import type { Instant } from '../../src/model/instant.ts';
import type { Random } from '../../src/sandbox/data/random.ts';
import type { Moment } from '../../src/sandbox/listing.ts';
import { clockOf, isInSeconds, listPage, type RowFacts } from './odd-service/listing.ts';
import type { Traits } from './odd-service/traits.ts';
import { answerOf } from './service-error.ts';

export interface SimulatedEvent {
  id: string;
  /** In milliseconds; answers may be coarser. */
  at: Instant;
  /** Orders ties at random: a late event may land anywhere in its tie group. */
  order: number;
  /** Filtered out after limit and offset, like events of deleted links. */
  hidden: boolean;
  /** Every page with it fails. */
  poison: boolean;
  /** Pages with it fail above a size. */
  fragile: boolean;
  /** When the service learned of it. */
  arrivedAt: Instant;
  /** When it was deleted or hidden: from then on no reader can be expected to have it. */
  goneAt: Instant | undefined;
}

export type SimulatedStore = ReturnType<typeof createSimulatedStore>;

/** The events of the simulated service, including deleted ones. */
function createSimulatedStore() {
  const alive: SimulatedEvent[] = [];
  const everVisible: SimulatedEvent[] = [];
  const isBefore = (a: SimulatedEvent, b: SimulatedEvent): boolean =>
    a.at < b.at || (a.at === b.at && a.order < b.order);
  return {
    /** In the service's order, including hidden and poisoned ones. */
    alive: (): readonly SimulatedEvent[] => alive,
    /** Events that were visible at any time. */
    everVisible: (): readonly SimulatedEvent[] => everVisible,
    add(event: SimulatedEvent) {
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
    remove(event: SimulatedEvent, now: Instant) {
      const index = alive.indexOf(event);
      if (index < 0) return;
      alive.splice(index, 1);
      event.goneAt ??= now;
    },
    hide(event: SimulatedEvent, now: Instant) {
      event.hidden = true;
      event.goneAt ??= now;
    },
  };
}

export interface SimulatedService extends EventsApi {
  readonly store: SimulatedStore;
  traits: Traits;
  readonly seed: number;
  /** Virtual time of the service. Nothing waits: it advances with a request, or when a test advances it. */
  now(): Instant;
  /** Virtual time of the reader. */
  ourNow(): Instant;
  pass(ms: number): void;
  requests(): number;
  /** A request takes up to 1.5 s, times this. */
  slowness: number;
  /** Called before a request is answered: changes happen here; it may throw. */
  onRequest: (query: EventsQuery, tries: number) => void;
  /** Called with the rows of every answer. */
  onAnswer: (query: EventsQuery, shown: readonly SimulatedEvent[]) => void;
}

export interface SimulatedServiceOptions {
  random: Random;
  start: Instant;
  traits?: Traits;
  /** The seed of random traits. */
  seed?: number;
}

const USUAL_TRIES = 6;

const FACTS: RowFacts<SimulatedEvent> = {
  hidden: (event) => event.hidden,
  poison: (event) => event.poison,
  fragile: (event) => event.fragile,
};

/** The service in memory, with a virtual clock. It answers by the sandbox's model. */
export function createSimulatedService({
  random,
  start,
  traits = {},
  seed = 1,
}: SimulatedServiceOptions): SimulatedService {
  const store = createSimulatedStore();
  let clock = start;
  let requests = 0;

  const service: SimulatedService = {
    store,
    traits,
    seed,
    slowness: 1,
    now: () => clock + (service.traits.clockSkew ?? 0),
    ourNow: () => clock,
    pass(ms) {
      clock += ms;
    },
    requests: () => requests,
    onRequest: () => {},
    onAnswer: () => {},
    stats: () => ({ requests, retries: 0, tooManyRequests: 0, bytes: 0 }),
    page: async (query: EventsQuery, options: PageOptions): Promise<Page> => {
      if (query.start > query.end)
        throw new Error('start lies after end: the reader asks a question nobody can answer');
      requests += 1;
      clock += random.int(50, 1500) * service.slowness;
      service.onRequest(query, options.tries ?? USUAL_TRIES);
      const shown = answer(query);
      service.onAnswer(query, shown);
      // The Date header has whole seconds.
      const serverNow = Math.floor(clockOf(service.traits, moment()) / 1000) * 1000;
      const inSeconds = isInSeconds(service.traits, moment());
      const records = shown.map(({ id, at }) => [id, inSeconds ? wholeSecond(at) : at]);
      return { records, serverNow, bytes: 0, tookMs: 0 };
    },
  };

  const moment = (): Moment => ({ seed, request: requests, now: service.now() });

  function answer(query: EventsQuery): SimulatedEvent[] {
    const question = {
      start: Math.floor(query.start),
      end: Math.ceil(query.end),
      ascending: query.sortOrder === 'asc',
      page: query.page,
      limit: query.limit,
    };
    return answerOf(() => listPage(store.alive(), question, service.traits, moment(), FACTS));
  }
  return service;
}

/** Records of the simulation are pairs of id and instant: flattening real ones would take most of the run time. */
export const flattenPair: Flatten = (record) => {
  const [id, at] = record as [string, Instant];
  return { id, at, values: [], extra: null, contradictions: [], typeMismatches: [] };
};

const wholeSecond = (at: Instant): Instant => Math.floor(at / 1000) * 1000;

/** The time that the reader may see. With whole seconds, the service still sorts and compares by milliseconds. */
export const shownAt = ({ at }: SimulatedEvent, { timestampForm }: Traits): Instant =>
  timestampForm === 'seconds' ? wholeSecond(at) : at;
