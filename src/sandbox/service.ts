import { stringifyJson } from '../model/json.ts';
import type { StreamName } from '../model/streams.ts';
import { type Behaviour, createBehaviour } from './behaviour.ts';
import { createArrivals } from './data/arrivals.ts';
import { createRandom } from './data/random.ts';
import { type Reading, readEvent } from './data/shape.ts';
import type { JsonObject, StoredEvent } from './data/types.ts';
import { createWorld } from './data/world.ts';
import { createLinkListing } from './link-listing.ts';
import { readQuery } from './params.ts';
import { createFaults, createRequestLog } from './requests.ts';
import type { Traits } from './traits.ts';

export interface ServiceOptions {
  seed?: number | undefined;
  rows?: Partial<Record<StreamName, number>> | undefined;
  days?: number | undefined;
  now?: (() => number) | undefined;
  /** Where the generated history ends (default: now). */
  historyEnd?: number | undefined;
  traits?: Traits | undefined;
  perSecond?: number | undefined;
  /** Links that never had an event (default 24). */
  quietLinks?: number | undefined;
}

/** The service without HTTP: its data, its answers, and its controls. */
export type SandboxService<T extends object = object> = ReturnType<typeof createService<T>>;

const DEFAULT_ROWS = { clicks: 12_000, leads: 1_500, sales: 500 };

export const createSandboxService = ({ traits, ...options }: ServiceOptions = {}) =>
  createService(options, createBehaviour(traits));

export function createService<T extends object>(options: Omit<ServiceOptions, 'traits'>, behaviour: Behaviour<T>) {
  const clock = options.now ?? Date.now;
  const now = (): number => clock() + (behaviour.aheadMs?.() ?? 0);
  const { seed = 1 } = options;
  const random = createRandom(seed);
  const world = createWorld({
    random,
    now: options.historyEnd ?? now(),
    days: options.days ?? 30,
    rows: { ...DEFAULT_ROWS, ...options.rows },
  });
  const { store } = world;
  const { latenessMs } = behaviour;
  const arrivals = createArrivals(world, random, { perSecond: options.perSecond ?? 0, startedAt: now(), latenessMs });
  const linkListing = createLinkListing(world, { count: options.quietLinks ?? 24, seed, now, page: behaviour.page });
  behaviour.plant?.(world, now());
  const faults = createFaults();
  const log = createRequestLog();
  let reads = 0;
  const requests: Record<StreamName, number> = { clicks: 0, leads: 0, sales: 0 };

  const reading = (): Reading => ({
    baseUrl: service.baseUrl,
    count: reads,
    now: now(),
    links: new Map(),
    reshapeLink: behaviour.reshapeLink,
  });
  const render = (event: StoredEvent, reading: Reading): JsonObject => {
    if (event.raw) return structuredClone(event.raw);
    const record = readEvent(event, reading);
    behaviour.reshape(record, event, reading);
    return record;
  };
  const visible = (stream: StreamName): StoredEvent[] => {
    arrivals.catchUp(now());
    return store.all(stream).filter((event) => !behaviour.hides?.(event));
  };

  const service = {
    /** The service's own URL; the HTTP server sets it when it listens. */
    baseUrl: 'http://127.0.0.1',
    world,
    faults,
    log,
    now,
    get traits() {
      return behaviour.traits;
    },
    set traits(next: T) {
      behaviour.traits = { ...next };
      behaviour.plant?.(world, now());
    },
    /** Each text is `name`, `name=value`, or `name=` to remove a trait. Traits that are not named stay. */
    changeTraits(texts: readonly string[]) {
      service.traits = texts.reduce((traits, text) => behaviour.readTrait(text, traits), { ...behaviour.traits });
    },
    /** Returns the page for `GET /events` as text, which the HTTP server sends unchanged, or throws an HttpError. */
    list(params: URLSearchParams) {
      arrivals.catchUp(now());
      reads += 1;
      const { stream, filter, ...query } = readQuery(params, world.customers, now());
      requests[stream] += 1;
      const moment = reading();
      // Only records that a test inserted can hold integers that JSON.stringify refuses.
      const text = (event: StoredEvent): string =>
        event.raw ? stringifyJson(event.raw) : JSON.stringify(render(event, moment));
      const place = { seed, request: requests[stream], now: now() };
      const bytes = (event: StoredEvent): number => Buffer.byteLength(text(event));
      const page = behaviour.page(store.all(stream), query, place, { filter, bytes });
      return { body: `[${page.map(text).join(',')}]`, rows: page.length };
    },
    /** The data of `GET /links`: every link, and functions to create and remove quiet ones. */
    linkListing,
    listLinks(params: URLSearchParams) {
      arrivals.catchUp(now());
      reads += 1;
      return linkListing.page(params, reading());
    },
    /** Every event that any query could return now, as the API would return it, oldest first. Records share their links. */
    events(stream: StreamName) {
      const moment = reading();
      return visible(stream).map((event) => render(event, moment));
    },
    /** The same events as `click.id` or `eventId` and the time only. An event that was ingested twice is listed twice. */
    truth: (stream: StreamName) => visible(stream).map(({ id, at }) => ({ id, at })),
    /** Generates this many new events between the two instants (default: just now). Returns their ids. */
    arrive(stream: StreamName, number: number, span = { from: now() - 1, to: now() - 1 }) {
      const times = Array.from({ length: number }, () => random.int(span.from, span.to)).sort((a, b) => a - b);
      const events = times.map((at) => world.make(stream, at));
      arrivals.take(events, now());
      return events.map(({ id }) => id);
    },
    stats() {
      const rows = { clicks: visible('clicks').length, leads: visible('leads').length, sales: visible('sales').length };
      const [pendingFaults, waiting] = [faults.pending, arrivals.waiting()];
      return { rows, ...log.totals(), pendingFaults, waiting, now: new Date(now()).toISOString() };
    },
  };
  return service;
}
