import { STREAM_NAMES, type StreamName } from '../model/streams.ts';
import { dirtyRecords } from './dirty.ts';
import { shareOf } from './random.ts';
import { eventFromRecord } from './record.ts';
import { type Reading, readEvent } from './shape.ts';
import type { TraitName, Traits } from './traits.ts';
import type { JsonObject, NewEvent, StoredEvent } from './types.ts';
import type { World } from './world.ts';

/** Traits that are made of data: switching one on plants rows, switching it off takes them out again. */
const PLANTING = ['ties', 'duplicates', 'rewrites', 'dirty'] as const satisfies TraitName[];
type Planting = (typeof PLANTING)[number];

export interface Planted {
  apply(traits: Traits, now: number): void;
  isPoison(event: StoredEvent): boolean;
  isFragile(event: StoredEvent): boolean;
}

const HOUR = 3_600_000;

export function createPlanted(world: World): Planted {
  const rows = new Map<Planting, Set<StoredEvent>>();
  const inForce = new Map<Planting, unknown>();
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
        if (inForce.get(trait) === traits[trait]) continue;
        const old = rows.get(trait);
        if (old) for (const stream of STREAM_NAMES) world.store.remove(stream, (event) => old.has(event));
        rows.set(trait, new Set(world.put(makers[trait](traits, now))));
        inForce.set(trait, traits[trait]);
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
