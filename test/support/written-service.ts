import type { EventsQuery, Page } from '../../src/api/client.ts';
import type { EventsApi } from '../../src/api/events-api.ts';
import { BadRecord, StopStream } from '../../src/model/errors.ts';
import type { Flatten } from '../../src/model/flatten.ts';
import type { Instant } from '../../src/model/instant.ts';
import { createMemorySink } from './memory-sink.ts';
import { createMemorySync, type MemorySyncOptions } from './memory-sync.ts';
import { DAY, NOON, POLICY } from './sandbox-sync.ts';

/** An event of a service whose answers are written by a test. */
export interface WrittenEvent {
  id: string;
  at: Instant;
  event?: string;
}

export interface Asked extends EventsQuery {
  /** The service's clock. */
  now: Instant;
  /** The first request is 1. */
  request: number;
}

/** The service's answer to a query: a page, or an error that it throws. */
export type Answers = (query: Asked, events: readonly WrittenEvent[]) => readonly WrittenEvent[];

/** The page according to the contract. */
export function plainly(
  { start, end, sortOrder, page, limit }: EventsQuery,
  events: readonly WrittenEvent[],
): WrittenEvent[] {
  const found = events.filter(({ at }) => at >= start && at < end).sort((a, b) => a.at - b.at);
  if (sortOrder === 'desc') found.reverse();
  return found.slice((page - 1) * limit, page * limit);
}

/** So many events at even intervals, the last just before `to`. */
export const spread = (count: number, from: Instant, to: Instant, prefix = 'e'): WrittenEvent[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `${prefix}${i}`,
    at: Math.round(from + ((to - from) * (i + 0.37)) / count),
  }));

export type WrittenSync = ReturnType<typeof createWrittenSync>;

/** A sync of such a service into memory. */
export function createWrittenSync(
  { events, answers, clock: behind = 0 }: { events: WrittenEvent[]; answers: Answers; clock?: number },
  options: Partial<MemorySyncOptions> = {},
) {
  let now = NOON;
  let answer = answers;
  let refusalsSay: Instant | undefined;
  const queries: EventsQuery[] = [];
  const api: EventsApi = {
    stats: () => ({ requests: queries.length, retries: 0, tooManyRequests: 0, bytes: 0 }),
    async page(query): Promise<Page> {
      queries.push(query);
      const clock = now + behind;
      const visible = events.filter(({ at }) => at <= clock);
      const serverNow = Math.floor(clock / 1000) * 1000;
      try {
        const records = answer({ ...query, now: clock, request: queries.length }, visible);
        return { records, serverNow, bytes: 0, tookMs: 0 };
      } catch (error) {
        if (error instanceof StopStream && error.answer) error.answer.serverNow = refusalsSay ?? serverNow;
        throw error;
      }
    },
  };
  const sink = createMemorySink(() => now);
  const since = options.since ?? NOON - 30 * DAY;
  const sync = createMemorySync({ api, sink, flatten, policy: POLICY, now: () => now, ...options, since });
  const isWanted = ({ at }: WrittenEvent): boolean => at >= since && at <= now;
  return {
    events,
    sink,
    queries,
    run: sync.run,
    pass(ms: number) {
      now += ms;
    },
    now: () => now,
    /** Sets the time in the service's refusals. */
    refusalsSay(at: Instant) {
      refusalsSay = at;
    },
    answers(change: Answers) {
      answer = change;
    },
    /** Certified events that are missing. */
    certifiedAndMissing() {
      const certified = sink.ledger().filter((entry) => entry.certified);
      return events
        .filter(({ at }) => certified.some(({ start, end }) => at >= start && at < end))
        .filter(({ id }) => !sink.rows.has(id))
        .map(({ id }) => id);
    },
    missing: () => events.filter((event) => isWanted(event) && !sink.rows.has(event.id)).map(({ id }) => id),
    watermark: () => sink.cursor()?.completeThrough,
    notes: () => sink.ledger().flatMap(({ note }) => (note === undefined ? [] : [note])),
  };
}

export const flatten: Flatten = (record) => {
  const { id, at } = record as WrittenEvent;
  if (id === undefined) throw new BadRecord('no id');
  return { id, at, values: [], extra: null, contradictions: [], typeMismatches: [] };
};
