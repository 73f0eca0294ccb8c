import { STREAM_NAMES, type StreamName } from '../../model/streams.ts';
import type { TraitName, Traits } from '../traits.ts';
import { type Random, shareOf } from './random.ts';
import { eventFromRecord } from './render.ts';
import { type Reading, readEvent } from './shape.ts';
import type { Json, JsonObject, NewEvent, StoredEvent } from './types.ts';
import type { World } from './world.ts';

/** Traits that consist of data: switching one on adds rows, switching it off removes them. */
const PLANTING = ['ties', 'duplicates', 'rewrites', 'dirty'] as const satisfies TraitName[];
type Planting = (typeof PLANTING)[number];

interface Planted {
  apply(traits: Traits, now: number): void;
  isPoison(event: StoredEvent): boolean;
  isFragile(event: StoredEvent): boolean;
}

const HOUR = 3_600_000;

export function createPlanted(world: World): Planted {
  const rows = new Map<Planting, Set<StoredEvent>>();
  const active = new Map<Planting, unknown>();
  const marked = { poison: new Set<StoredEvent>(), fragile: new Set<StoredEvent>() };
  const numbers = { poison: 0, fragile: 0 };

  const makers: Record<Planting, (traits: Traits, now: number) => NewEvent[]> = {
    ties: ({ ties = 0 }, now) => tiedEvents(world, ties, now),
    duplicates: ({ duplicates = 0 }) => chosen(STREAM_NAMES, 'duplicates', duplicates),
    rewrites: ({ rewrites = 0 }) => chosen(['leads', 'sales'], 'rewrites', rewrites).map(rewritten),
    dirty: ({ dirty }, now) => (dirty ? dirtyEvents(world, now) : []),
  };

  const chosen = (streams: readonly StreamName[], salt: string, share: number): NewEvent[] =>
    streams.flatMap((stream) => world.store.all(stream).filter((event) => shareOf(event.id, salt) < share));

  return {
    isPoison: (event) => marked.poison.has(event),
    isFragile: (event) => marked.fragile.has(event),
    apply(traits, now) {
      for (const trait of PLANTING) {
        if (active.get(trait) === traits[trait]) continue;
        const old = rows.get(trait);
        if (old) for (const stream of STREAM_NAMES) world.store.remove(stream, (event) => old.has(event));
        rows.set(trait, new Set(world.put(makers[trait](traits, now))));
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
    // One an hour, so that the default window of 24 hours shows them all.
    const sound = (index: number): JsonObject => {
      const reading: Reading = { traits: {}, baseUrl: 'http://sandbox.invalid', count: 0, now, links: new Map() };
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
  // JSON.parse makes an own key of it; an object literal would set the prototype.
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

const DAY = 86_400_000;
/** Bounds the arrivals that are generated at once after a long pause. */
const MOST_AT_ONCE = 50_000;

/** Events that happen while the sandbox runs. There is no timer: they are generated when somebody reads. */
interface Arrivals {
  /** Generates the events that are due until now, and stores those that have become visible. */
  catchUp(now: number): void;
  /** Adds new events; with `lateness` they become visible later. */
  take(events: readonly NewEvent[], now: number): void;
  /** A generated event, backdated if the trait says so. */
  happen(stream: StreamName, at: number): NewEvent;
  /** Events that have happened and are not visible yet. */
  waiting(): readonly NewEvent[];
}

interface ArrivalsParts {
  world: World;
  random: Random;
  perSecond: number;
  startedAt: number;
  traits(): Traits;
}

export function createArrivals({ world, random, perSecond, startedAt, traits }: ArrivalsParts): Arrivals {
  let hidden: { event: NewEvent; visibleAt: number }[] = [];
  let happenedUntil = startedAt;

  const streamOf = (roll: number): StreamName => (roll < 0.8 ? 'clicks' : roll < 0.95 ? 'leads' : 'sales');

  const happen = (stream: StreamName, at: number): NewEvent => {
    const { backdated = 0 } = traits();
    const back = stream !== 'clicks' && random.chance(backdated) ? random.int(2 * DAY, 400 * DAY) : 0;
    return world.make(stream, at - back);
  };

  const take = (events: readonly NewEvent[], now: number, happenedAt: (index: number) => number = () => now): void => {
    const { lateness = 0 } = traits();
    const late = events.map((event, index) => ({ event, visibleAt: happenedAt(index) + lateness }));
    hidden.push(...late.filter(({ visibleAt }) => visibleAt > now));
    world.put(late.filter(({ visibleAt }) => visibleAt <= now).map(({ event }) => event));
  };

  return {
    happen,
    take: (events, now) => take(events, now),
    waiting: () => hidden.map(({ event }) => event),
    catchUp(now) {
      const due = hidden.filter(({ visibleAt }) => visibleAt <= now);
      if (due.length > 0) {
        hidden = hidden.filter(({ visibleAt }) => visibleAt > now);
        world.put(due.map(({ event }) => event));
      }
      if (perSecond <= 0 || now <= happenedUntil) return;
      const step = 1000 / perSecond;
      const number = Math.min(Math.floor((now - happenedUntil) / step), MOST_AT_ONCE);
      if (number === 0) return;
      const times = Array.from({ length: number }, (_, i) => Math.floor(happenedUntil + (i + 0.5) * step));
      happenedUntil = number === MOST_AT_ONCE ? now : happenedUntil + number * step;
      take(
        times.map((at) => happen(streamOf(random.next()), at)),
        now,
        (index) => times[index] ?? now,
      );
    },
  };
}
