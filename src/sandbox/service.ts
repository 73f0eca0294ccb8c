import { STREAM_NAMES, type StreamName } from '../model/streams.ts';
import { createArrivals, createPlanted } from './data/planted.ts';
import { createRandom, shareOf } from './data/random.ts';
import { createRendering, eventFromRecord, render } from './data/render.ts';
import type { Reading } from './data/shape.ts';
import type { Customer, JsonObject, Link, StoredEvent } from './data/types.ts';
import { createWorld } from './data/world.ts';
import { createLinkListing, type LinkListing } from './link-listing.ts';
import { clockOf, deepPage, isInSeconds, listPage, type Moment } from './listing.ts';
import { filterOf, readQuery } from './params.ts';
import { createFaults, createRequestLog, type Faults, type RequestLog } from './requests.ts';
import { type Traits, wordAndNumber } from './traits.ts';
import { askedWindow } from './window.ts';

export interface ServiceOptions {
  seed?: number | undefined;
  rows?: Partial<Record<StreamName, number>> | undefined;
  days?: number | undefined;
  now?: (() => number) | undefined;
  /** Where the generated history ends (default: now). */
  historyEnd?: number | undefined;
  traits?: Traits | undefined;
  live?: { perSecond: number } | undefined;
  /** Links that never had an event (default 24). */
  quietLinks?: number | undefined;
}

/** One page as text, so that the HTTP server sends exactly what the service produced. */
export interface EventsPage {
  body: string;
  rows: number;
  delayMs: number;
  /** The value of the Date header. */
  date: number;
}

/** The service without HTTP: its data, its answers, and the controls for tests. */
export interface SandboxService {
  /** Answers `GET /events`, or throws an HttpError. */
  list(params: URLSearchParams): EventsPage;
  /** Answers `GET /links`, or throws an HttpError. */
  listLinks(params: URLSearchParams): EventsPage;
  /** What `GET /links` is about: every link, and how to make and remove quiet ones. */
  readonly linkListing: Omit<LinkListing, 'page'>;
  /** The truth: every event that any query could show now, as the API would show it, oldest first. Records share their links. */
  events(stream: StreamName): JsonObject[];
  /** The same without the records. */
  truth(stream: StreamName): { id: string; at: number }[];
  /** Only the ids: `click.id` or `eventId`, oldest first; what was ingested twice is here twice. */
  ids(stream: StreamName): string[];
  /** Inserts a record in the API's shape, possibly late or backdated; it is returned unchanged. */
  add(stream: StreamName, record: JsonObject): void;
  /** Generates this many new events between the two instants (default: just now). Returns their ids. */
  arrive(stream: StreamName, number: number, span?: { from: number; to: number }): string[];
  remove(stream: StreamName, id: string): boolean;
  /** Removes the link's events. Returns how many. */
  deleteLink(linkId: string): number;
  renameLink(linkId: string, to: { domain?: string; key?: string; url?: string }): void;
  /** Changes counters, lastClicked and updatedAt of every link, as clicks do. */
  touchCounters(): void;
  /** Ids of events that were visible once and are gone: by remove, deleteLink, drift or vanish. */
  removed(stream: StreamName): string[];
  poisoned(stream: StreamName): string[];
  readonly links: readonly Link[];
  readonly customers: readonly Customer[];
  get traits(): Traits;
  set traits(traits: Traits);
  readonly faults: Faults;
  readonly log: RequestLog;
  readonly requests: RequestLog['entries'];
  stats(): SandboxStats;
  now(): number;
  /** The service's own URL; the HTTP server sets it when it listens. */
  baseUrl: string;
}

export interface SandboxStats {
  rows: Record<StreamName, number>;
  requests: number;
  byStatus: Record<string, number>;
  pendingFaults: number;
  waiting: number;
  now: string;
}

const DEFAULT_ROWS = { clicks: 12_000, leads: 1_500, sales: 500 };
const SLOW_PAGE_MS = 1000;
const QUIET_LINKS = 24;

export function createSandboxService(options: ServiceOptions = {}): SandboxService {
  const clock = options.now ?? Date.now;
  let traits: Traits = { ...options.traits };
  const now = (): number => clock() + (traits.clockSkew ?? 0);
  const { seed = 1 } = options;
  const random = createRandom(seed);
  const world = createWorld({
    random,
    now: options.historyEnd ?? now(),
    days: options.days ?? 30,
    rows: { ...DEFAULT_ROWS, ...options.rows },
  });
  const { store } = world;
  const arrivals = createArrivals({
    world,
    random,
    perSecond: options.live?.perSecond ?? 0,
    startedAt: now(),
    traits: () => traits,
  });
  const linkListing = createLinkListing({
    active: world.links,
    quiet: options.quietLinks ?? QUIET_LINKS,
    seed,
    historyStart: world.historyStart,
    now,
    traits: () => traits,
  });
  const planted = createPlanted(world);
  planted.apply(traits, now());
  const gone: Record<StreamName, string[]> = { clicks: [], leads: [], sales: [] };
  const faults = createFaults();
  const log = createRequestLog();
  let reads = 0;
  const requests: Record<StreamName, number> = { clicks: 0, leads: 0, sales: 0 };

  const moment = (stream: StreamName): Moment => ({ seed, request: requests[stream], now: now() });
  const reading = (): Reading => {
    const timestampForm = isInSeconds(traits, { seed, request: reads, now: 0 }) ? 'seconds' : traits.timestampForm;
    return {
      traits: { ...traits, timestampForm },
      baseUrl: service.baseUrl,
      count: reads,
      now: now(),
      links: new Map(),
    };
  };
  const survives = ({ id }: StoredEvent): boolean =>
    !traits.dropAfterLimit || shareOf(id, 'drop') >= traits.dropAfterLimit;
  const visible = (stream: StreamName): StoredEvent[] => {
    arrivals.catchUp(now());
    return store.all(stream).filter(survives);
  };
  const take = (stream: StreamName, drop: (event: StoredEvent) => boolean): number => {
    const taken = store.remove(stream, drop);
    gone[stream].push(...taken.map((event) => event.id));
    return taken.length;
  };

  /** What other clients of the service change between two of our pages. */
  function meanwhile(stream: StreamName): void {
    const { drift, vanish } = traits;
    if (drift) {
      const { word, number } = wordAndNumber(drift, 1);
      const span = now() - world.historyStart;
      for (let i = 0; i < number; i++) {
        if (word !== 'delete') world.put([world.make(stream, world.historyStart + Math.floor(random.next() * span))]);
        const existing = word === 'insert' ? undefined : store.all(stream)[random.int(0, store.all(stream).length - 1)];
        if (existing) take(stream, (event) => event === existing);
      }
    }
    if (vanish && reads % vanish === 0 && world.links.length > 1) service.deleteLink(random.pick(world.links).id);
  }

  const service: SandboxService = {
    baseUrl: 'http://127.0.0.1',
    links: world.links,
    customers: world.customers,
    faults,
    log,
    requests: log.entries,
    now,
    get traits() {
      return traits;
    },
    set traits(next) {
      traits = { ...next };
      planted.apply(traits, now());
    },
    list(params) {
      arrivals.catchUp(now());
      reads += 1;
      const query = readQuery(params, traits.pagesFromZero ? 0 : 1);
      const { stream } = query;
      requests[stream] += 1;
      const question = { ...query, ...askedWindow(query, traits, now()) };
      meanwhile(stream);
      const rendering = createRendering(reading());
      const page = listPage(
        store.all(stream),
        question,
        traits,
        { seed, request: requests[stream], now: now() },
        {
          filter: filterOf(query, (id) => world.customers.find((customer) => customer.id === id)?.click.id),
          hidden: traits.dropAfterLimit ? (event) => !survives(event) : undefined,
          poison: traits.poison ? planted.isPoison : undefined,
          fragile: traits.fragile ? planted.isFragile : undefined,
          bytes: rendering.bytes,
        },
      );
      const delayMs = deepPage(question, traits) === 'slow' ? SLOW_PAGE_MS : 0;
      return { body: rendering.page(page), rows: page.length, delayMs, date: clockOf(traits, moment(stream)) };
    },
    linkListing,
    listLinks(params) {
      arrivals.catchUp(now());
      reads += 1;
      return { ...linkListing.page(params, reading()), delayMs: 0, date: now() };
    },
    events(stream) {
      const moment = reading();
      return visible(stream).map((event) => render(event, moment));
    },
    truth: (stream) => visible(stream).map(({ id, at }) => ({ id, at })),
    ids: (stream) => visible(stream).map((event) => event.id),
    add(stream, record) {
      world.put([eventFromRecord(stream, record, now())]);
    },
    arrive(stream, number, span = { from: now() - 1, to: now() - 1 }) {
      const times = Array.from({ length: number }, () => random.int(span.from, span.to)).sort((a, b) => a - b);
      const events = times.map((at) => arrivals.happen(stream, at));
      arrivals.take(events, now());
      return events.map((event) => event.id);
    },
    remove: (stream, id) => take(stream, (event) => event.id === id) > 0,
    deleteLink(linkId) {
      const index = world.links.findIndex((link) => link.id === linkId);
      if (index >= 0) world.links.splice(index, 1);
      const ofLink = (event: StoredEvent): boolean => event.click.link.id === linkId;
      return STREAM_NAMES.reduce((sum, stream) => sum + take(stream, ofLink), 0);
    },
    renameLink(linkId, to) {
      const link = world.links.find(({ id }) => id === linkId);
      if (link) Object.assign(link, to, { updatedAt: now() });
    },
    touchCounters() {
      for (const link of world.links) {
        link.clicks += 1;
        link.leads += 1;
        link.conversions += 1;
        link.sales += 1;
        link.saleAmount += 100;
        link.lastClicked = now();
        link.updatedAt = now();
      }
    },
    removed: (stream) => [...gone[stream]],
    poisoned: (stream) =>
      store
        .all(stream)
        .filter(planted.isPoison)
        .map((event) => event.id),
    stats() {
      const rows = { clicks: visible('clicks').length, leads: visible('leads').length, sales: visible('sales').length };
      const waiting = arrivals.waiting().length;
      return { rows, ...log.totals(), pendingFaults: faults.pending, waiting, now: new Date(now()).toISOString() };
    },
  };
  return service;
}
