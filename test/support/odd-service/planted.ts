import { STREAM_NAMES, type StreamName } from '../../../src/model/streams.ts';
import { shareOf } from '../../../src/sandbox/data/random.ts';
import { readEvent } from '../../../src/sandbox/data/shape.ts';
import type { Json, JsonObject, NewEvent, StoredEvent } from '../../../src/sandbox/data/types.ts';
import type { World } from '../../../src/sandbox/data/world.ts';
import type { Listed } from '../../../src/sandbox/listing.ts';
import { eventFromRecord } from './from-record.ts';
import type { Traits } from './traits.ts';

/** Traits implemented as data: enabling one adds rows, disabling it removes them. */
const PLANTING = ['ties', 'duplicates', 'rewrites', 'dirty'] as const;
type Planting = (typeof PLANTING)[number];

/** Removes events from the stored ones, and returns them. */
export function removeFrom(events: StoredEvent[], drop: (event: StoredEvent) => boolean): StoredEvent[] {
  const gone = events.filter(drop);
  const left = events.filter((event) => !drop(event));
  events.splice(0, events.length);
  for (const event of left) events.push(event);
  return gone;
}

interface Planted {
  apply(world: World, traits: Traits, now: number): void;
  isPoison(event: Listed): boolean;
  isFragile(event: Listed): boolean;
}

const HOUR = 3_600_000;

export function createPlanted(): Planted {
  const rows = new Map<Planting, Set<StoredEvent>>();
  const active = new Map<Planting, unknown>();
  const marked = { poison: new Set<Listed>(), fragile: new Set<Listed>() };
  const numbers = { poison: 0, fragile: 0 };

  return {
    isPoison: (event) => marked.poison.has(event),
    isFragile: (event) => marked.fragile.has(event),
    apply(world, traits, now) {
      for (const trait of PLANTING) {
        if (active.get(trait) === traits[trait]) continue;
        const old = rows.get(trait);
        if (old) for (const stream of STREAM_NAMES) removeFrom(world.store.all(stream), (event) => old.has(event));
        rows.set(trait, new Set(world.put(MAKERS[trait](world, traits, now))));
        active.set(trait, traits[trait]);
      }
      const wanted = { poison: traits.poison ?? 0, fragile: Number.parseInt(traits.fragile ?? '0', 10) };
      for (const mark of ['poison', 'fragile'] as const) {
        if (numbers[mark] === wanted[mark]) continue;
        numbers[mark] = wanted[mark];
        marked[mark] = new Set(STREAM_NAMES.flatMap((stream) => spreadOver(world.store.all(stream), wanted[mark])));
      }
    },
  };
}

const MAKERS: Record<Planting, (world: World, traits: Traits, now: number) => NewEvent[]> = {
  ties: (world, { ties = 0 }, now) => tiedEvents(world, ties, now),
  duplicates: (world, { duplicates = 0 }) => chosen(world, STREAM_NAMES, 'duplicates', duplicates),
  rewrites: (world, { rewrites = 0 }) => chosen(world, ['leads', 'sales'], 'rewrites', rewrites).map(rewritten),
  dirty: (world, { dirty }, now) => (dirty ? dirtyEvents(world, now) : []),
};

const chosen = ({ store }: World, streams: readonly StreamName[], salt: string, share: number): NewEvent[] =>
  streams.flatMap((stream) => store.all(stream).filter((event) => shareOf(event.id, salt) < share));

function tiedEvents(world: World, number: number, now: number): NewEvent[] {
  const instant = Math.floor((now - (now - world.historyStart) / 3) / 1000) * 1000;
  return STREAM_NAMES.flatMap((stream) => Array.from({ length: number }, () => world.make(stream, instant)));
}

/** The same eventId a minute later, with another name, other metadata and another amount. */
function rewritten(event: NewEvent): NewEvent {
  return {
    ...event,
    at: event.at + 60_000,
    name: `${event.name} (corrected)`,
    metadata: { corrected: true },
    ...(event.sale && { sale: { ...event.sale, amount: event.sale.amount + 1 } }),
  };
}

function dirtyEvents(world: World, now: number): NewEvent[] {
  return STREAM_NAMES.flatMap((stream) => {
    // One an hour, so that the default window of 24 hours shows all of them.
    const sound = (index: number): JsonObject => {
      const reading = { baseUrl: 'http://sandbox.invalid', count: 0, now, links: new Map() };
      return readEvent({ ...world.make(stream, now - (index + 1) * HOUR), order: 0 }, reading);
    };
    return dirtyRecords(stream, sound).map((record) => eventFromRecord(stream, record, now));
  });
}

function spreadOver(events: readonly StoredEvent[], number: number): StoredEvent[] {
  const step = events.length / (number + 1);
  return Array.from({ length: number }, (_, i) => events[Math.floor((i + 1) * step)]).filter(
    (event) => event !== undefined,
  );
}

/** One kind of difficult record. `spoil` changes a sound record in place. */
interface DifficultRecord {
  name: string;
  spoil(record: JsonObject): void;
}

const BEYOND_DOUBLE = 9_007_199_254_740_993n;
const TEXT_THAT_BREAKS_COPY = 'tab\there\nnewline\r\n\\. \\N back\\slash "quote" \\';

const part = (record: JsonObject, name: string): JsonObject => record[name] as JsonObject;

const ANYWHERE: readonly DifficultRecord[] = [
  {
    name: 'NUL',
    spoil(record) {
      part(record, 'click').city = 'Nul\u0000ville';
      part(record, 'link').comments = '\u0000';
    },
  },
  {
    name: 'lone surrogates',
    spoil(record) {
      part(record, 'click').refererUrl = 'https://example.com/\ud800';
      part(record, 'link').title = '\udc00 first';
    },
  },
  {
    name: 'integers above 2^53',
    spoil(record) {
      part(record, 'link').clicks = BEYOND_DOUBLE;
      if (record.sale) part(record, 'sale').amount = BEYOND_DOUBLE;
      if ('metadata' in record) record.metadata = { orderNumber: BEYOND_DOUBLE, negative: -BEYOND_DOUBLE };
    },
  },
  {
    name: 'text that breaks COPY',
    spoil(record) {
      part(record, 'link').comments = TEXT_THAT_BREAKS_COPY;
      if ('eventName' in record) record.eventName = TEXT_THAT_BREAKS_COPY;
    },
  },
  {
    name: 'empty ip',
    spoil(record) {
      part(record, 'click').ip = '';
      record.ip = '';
    },
  },
  {
    name: 'country Unknown',
    spoil(record) {
      for (const field of ['country', 'city', 'continent']) {
        part(record, 'click')[field] = 'Unknown';
        record[field] = 'Unknown';
      }
    },
  },
];

const metadata = (name: string, make: () => Json): DifficultRecord => ({
  name,
  spoil(record) {
    record.metadata = make();
  },
});

const IN_METADATA: readonly DifficultRecord[] = [
  metadata('NUL and lone surrogates in metadata', () => ({ 'key\u0000': 'a\u0000b', half: '\ud83d' })),
  metadata('metadata over 1 MB', () => ({ blob: 'x'.repeat(1_100_000) })),
  metadata('metadata that is a string', () => 'plan=team'),
  metadata('metadata that is an array', () => [1, 'two', { three: 3 }]),
  metadata('metadata 60 levels deep', () => {
    let nest: Json = 'bottom';
    for (let level = 0; level < 60; level++) nest = { down: nest };
    return nest;
  }),
  // JSON.parse creates an own key; an object literal would set the prototype.
  metadata('a key called __proto__', () => JSON.parse('{"__proto__":{"admin":true},"constructor":"x"}') as Json),
];

/** Difficult records, one of each kind, each made from a sound record. */
function dirtyRecords(stream: StreamName, sound: (index: number) => JsonObject): JsonObject[] {
  const kinds = stream === 'clicks' ? ANYWHERE : [...ANYWHERE, ...IN_METADATA];
  return kinds.map((bite, index) => {
    const record = sound(index);
    bite.spoil(record);
    return record;
  });
}
