import type { Page } from '../../src/api/client.ts';
import type { EventsApi, PageOptions } from '../../src/api/events-api.ts';
import type { EventsQuery } from '../../src/api/query.ts';
import type { Flatten } from '../../src/model/flatten.ts';
import type { Instant } from '../../src/model/instant.ts';
import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import type { Random } from '../../src/sandbox/random.ts';
import { serviceError } from './service-error.ts';
import { createSimulatedStore, type SimulatedEvent, type SimulatedStore } from './simulated-store.ts';

/** How the simulated service bends the contract: the field notes as switches. */
export interface ServiceTraits {
  /** Field note 1: start and end are widened to whole UTC days. */
  widen: boolean;
  startIncluded: boolean;
  endIncluded: boolean;
  /** Timestamps are shown in whole seconds while the service sorts by milliseconds. */
  truncated: boolean;
  shuffledTies: boolean;
  repeatsLastPage: boolean;
  /** Pages with a higher number fail with 500. */
  deepestPage: number | undefined;
  /** Answers with more rows than this are refused for their size. */
  mostRows: number | undefined;
  /** How far the service's clock runs ahead of ours. */
  skewMs: number;
}

export const PLAIN: ServiceTraits = {
  widen: false,
  startIncluded: true,
  endIncluded: false,
  truncated: false,
  shuffledTies: false,
  repeatsLastPage: false,
  deepestPage: undefined,
  mostRows: undefined,
  skewMs: 0,
};

export interface SimulatedService extends EventsApi {
  readonly store: SimulatedStore;
  traits: ServiceTraits;
  /** Virtual time as the service knows it. Nothing ever waits: it moves when a request is made or a test says so. */
  now(): Instant;
  /** Virtual time as our side knows it. */
  ourNow(): Instant;
  pass(ms: number): void;
  requests(): number;
  /** A request takes up to 1.5 s, times this. */
  slowness: number;
  /** Called at every request before it is answered: whatever happens meanwhile, happens here; it may throw. */
  onRequest: (query: EventsQuery, tries: number) => void;
  /** Called with every answer. */
  onAnswer: (query: EventsQuery, shown: readonly SimulatedEvent[]) => void;
}

const USUAL_TRIES = 6;

/** The service in memory, with a clock that no one waits for. It pages exactly as the sandbox does; a test compares them. */
export function createSimulatedService(random: Random, start: Instant): SimulatedService {
  const store = createSimulatedStore();
  let clock = start;
  let requests = 0;

  const service: SimulatedService = {
    store,
    traits: PLAIN,
    slowness: 1,
    now: () => clock + service.traits.skewMs,
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
      const { traits } = service;
      if (traits.deepestPage !== undefined && query.page > traits.deepestPage) throw serviceError(500);
      const rows = pageOf(query, store.alive(), traits, random);
      if (rows.some((event) => event.poison)) throw serviceError(query.limit === 1 ? 422 : 500);
      const visible = rows.filter((event) => !event.hidden);
      if (traits.mostRows !== undefined && visible.length > traits.mostRows) throw serviceError(500);
      service.onAnswer(query, rows);
      // The Date header is in whole seconds.
      const serverNow = Math.floor(service.now() / 1000) * 1000;
      return { records: visible.map((event) => [event.id, shownAt(event, traits)]), serverNow, bytes: 0, tookMs: 0 };
    },
  };
  return service;
}

/** Records of the simulation are pairs of id and instant: flattening real ones would be most of the run time. */
export const flattenPair: Flatten = (record) => {
  const [id, at] = record as [string, Instant];
  return { id, at, values: [], extra: null, contradictions: [], misfits: [] };
};

export const shownAt = ({ at }: SimulatedEvent, { truncated }: ServiceTraits): Instant =>
  truncated ? Math.floor(at / 1000) * 1000 : at;

/** One page, hidden rows among it: limit and offset count them, only then are they taken out. */
function pageOf(
  query: EventsQuery,
  all: readonly SimulatedEvent[],
  traits: ServiceTraits,
  random: Random,
): SimulatedEvent[] {
  const { from, until } = rangeOf(query, traits);
  const rows = all.filter((event) => event.at >= from && event.at < until);
  if (traits.shuffledTies) shuffleTies(rows, random);
  if (query.sortOrder === 'desc') rows.reverse();
  let offset = (query.page - 1) * query.limit;
  if (offset >= rows.length && traits.repeatsLastPage && rows.length > 0) {
    offset = Math.floor((rows.length - 1) / query.limit) * query.limit;
  }
  return rows.slice(offset, offset + query.limit);
}

function rangeOf({ start, end }: EventsQuery, traits: ServiceTraits): { from: Instant; until: Instant } {
  const [first, last] = [Math.floor(start), Math.ceil(end)];
  if (traits.widen) return { from: startOfDay(first), until: startOfDay(last) + DAY_MS };
  return { from: traits.startIncluded ? first : first + 1, until: traits.endIncluded ? last + 1 : last };
}

function shuffleTies(rows: SimulatedEvent[], random: Random): void {
  for (let begin = 0; begin < rows.length; ) {
    let end = begin + 1;
    while (rows[end]?.at === rows[begin]?.at && end < rows.length) end += 1;
    if (end - begin > 1) rows.splice(begin, end - begin, ...random.shuffle(rows.slice(begin, end)));
    begin = end;
  }
}
