import { STREAM_NAMES, type StreamName } from '../../../src/model/streams.ts';
import type { Behaviour } from '../../../src/sandbox/behaviour.ts';
import { shareOf } from '../../../src/sandbox/data/random.ts';
import type { Customer, JsonObject, Link, StoredEvent } from '../../../src/sandbox/data/types.ts';
import { HttpError } from '../../../src/sandbox/params.ts';
import type { RequestLog } from '../../../src/sandbox/requests.ts';
import { type Sandbox as Served, type SandboxOptions as ServedOptions, serve } from '../../../src/sandbox/server.ts';
import {
  createService,
  type ServiceOptions as PlainOptions,
  type SandboxService as PlainService,
} from '../../../src/sandbox/service.ts';
import { eventFromRecord } from './from-record.ts';
import { listPage } from './listing.ts';
import { createPlanted, removeFrom } from './planted.ts';
import { reshape, reshapeLink } from './records.ts';
import { readOddTrait, type TraitName, type Traits } from './traits.ts';

/** The sandbox for tests: with every trait, and methods to change its data. */
export interface SandboxService extends PlainService<Traits> {
  /** Inserts a record in the API's shape, possibly late or backdated; it is returned unchanged. */
  add(stream: StreamName, record: JsonObject): void;
  remove(stream: StreamName, id: string): boolean;
  /** Removes the link's events. Returns how many. */
  deleteLink(linkId: string): number;
  renameLink(linkId: string, to: { domain?: string; key?: string; url?: string }): void;
  /** Changes counters, lastClicked and updatedAt of every link, as clicks do. */
  touchCounters(): void;
  /** Ids of events that were visible once and were deleted by `remove` or `deleteLink`. */
  removed(stream: StreamName): string[];
  poisoned(stream: StreamName): string[];
  /** `click.id` or `eventId` of all visible events, oldest first; one ingested twice is listed twice. */
  ids(stream: StreamName): string[];
  readonly requests: RequestLog['entries'];
  readonly links: readonly Link[];
  readonly customers: readonly Customer[];
}

export interface ServiceOptions extends Omit<PlainOptions, 'traits'> {
  traits?: Traits | undefined;
}

export type SandboxOptions = ServiceOptions & Omit<ServedOptions, keyof PlainOptions>;
export type Sandbox = Served<SandboxService>;

export const startSandbox = (options: SandboxOptions = {}): Promise<Sandbox> =>
  serve(createSandboxService(options), options);

/** The traits that concern paging. Those of time windows do not apply to a listing of links. */
const PAGING: readonly TraitName[] = [
  ...(['limitCap', 'limitMax', 'ignoreLimit', 'ignorePage', 'pagesFromZero', 'lastPage', 'deepPages'] as const),
  ...(['sortOrder', 'shuffleTies', 'emptyAnswers', 'partial', 'dropLast', 'repeatRows', 'flapping'] as const),
];

const FORBIDDEN = {
  permission: 'Your API key lacks the permission analytics.read for this workspace.',
  plan: 'Analytics and events need a paid plan: upgrade to Business or higher.',
  usage: 'Your workspace has exceeded its monthly events usage. Upgrade, or wait for the next billing cycle.',
} as const;

export function createOddBehaviour(traits: Traits = {}) {
  const planted = createPlanted();
  const hides = ({ id }: { id: string }): boolean => shareOf(id, 'drop') < (odd.traits.dropAfterLimit ?? 0);
  const odd: Behaviour<Traits> & Pick<typeof planted, 'isPoison'> = {
    traits,
    readTrait: readOddTrait,
    hides,
    latenessMs: () => odd.traits.lateness ?? 0,
    aheadMs: () => odd.traits.clockSkew ?? 0,
    plant: (world, now) => planted.apply(world, odd.traits, now),
    reshape: (record, event, reading) => reshape(record, event, odd.traits, reading),
    reshapeLink: (record, link, reading) => reshapeLink(record, link, odd.traits, reading),
    page(rows, { start, end, ...query }, moment, facts) {
      if (start === undefined || end === undefined) {
        const paging = Object.fromEntries(PAGING.map((name) => [name, odd.traits[name]]));
        return listPage(rows, { ...query, start: 0, end: Number.MAX_SAFE_INTEGER }, paging, moment);
      }
      if (odd.traits.forbidden) throw new HttpError('forbidden', FORBIDDEN[odd.traits.forbidden]);
      return listPage(rows, { ...query, start, end }, odd.traits, moment, {
        ...facts,
        hidden: odd.traits.dropAfterLimit ? hides : undefined,
        poison: odd.traits.poison ? planted.isPoison : undefined,
        fragile: odd.traits.fragile ? planted.isFragile : undefined,
      });
    },
    isPoison: planted.isPoison,
  };
  return odd;
}

export function createSandboxService({ traits, ...options }: ServiceOptions = {}): SandboxService {
  const behaviour = createOddBehaviour(traits);
  const service = createService(options, behaviour);
  const { store, links, customers } = service.world;
  const gone: Record<StreamName, string[]> = { clicks: [], leads: [], sales: [] };
  const take = (stream: StreamName, drop: (event: StoredEvent) => boolean): number => {
    const taken = removeFrom(store.all(stream), drop);
    gone[stream].push(...taken.map((event) => event.id));
    return taken.length;
  };
  return Object.assign(service, {
    links,
    customers,
    requests: service.log.entries,
    ids: (stream: StreamName) => service.truth(stream).map(({ id }) => id),
    add(stream: StreamName, record: JsonObject) {
      service.world.put([eventFromRecord(stream, record, service.now())]);
    },
    remove: (stream: StreamName, id: string) => take(stream, (event) => event.id === id) > 0,
    deleteLink(linkId: string) {
      const index = links.findIndex((link) => link.id === linkId);
      if (index >= 0) links.splice(index, 1);
      return STREAM_NAMES.reduce((sum, stream) => sum + take(stream, ({ click }) => click.link.id === linkId), 0);
    },
    renameLink(linkId: string, to: object) {
      const link = links.find(({ id }) => id === linkId);
      if (link) Object.assign(link, to, { updatedAt: service.now() });
    },
    touchCounters() {
      for (const link of links) {
        for (const name of ['clicks', 'leads', 'conversions', 'sales'] as const) link[name] += 1;
        link.saleAmount += 100;
        link.lastClicked = service.now();
        link.updatedAt = service.now();
      }
    },
    removed: (stream: StreamName) => [...gone[stream]],
    poisoned: (stream: StreamName) =>
      store
        .all(stream)
        .filter(behaviour.isPoison)
        .map(({ id }) => id),
  });
}
