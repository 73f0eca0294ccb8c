import { expect, test } from 'vitest';
import { DAY, HOUR, MINUTE, NOON } from '../support/sandbox-sync.ts';
import { serviceError } from '../support/service-error.ts';
import {
  type Answers,
  type Asked,
  createWrittenSync,
  plainly,
  spread,
  type WrittenEvent,
} from '../support/written-service.ts';

/** Each world has its own instance, since it may have state. */
type Make = () => Answers;

export const refuse = (status: number, message = 'refused'): never => {
  throw serviceError(status, message);
};

/** A constant number for a text. */
export function hash(text: string): number {
  let h = 2166136261;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  h ^= h >>> 15;
  return Math.imul(h, 2246822507) >>> 0;
}

type Rows = readonly WrittenEvent[];
export const floor = (at: number, unit: number): number => Math.floor(at / unit) * unit;
export const ceil = (at: number, unit: number): number => Math.ceil(at / unit) * unit;
export const shard = ({ id }: WrittenEvent, of: number): number => hash(id) % of;
/** In the requested order, ties by id. */
export const sorted = (rows: Rows, { sortOrder }: Asked): WrittenEvent[] => {
  const sign = sortOrder === 'desc' ? -1 : 1;
  return [...rows].sort((a, b) => sign * (a.at - b.at || (a.id < b.id ? -1 : 1)));
};
export const within = ({ start, end }: { start: number; end: number }, rows: Rows): WrittenEvent[] =>
  rows.filter(({ at }) => at >= start && at < end);
export const paged = <T>(rows: readonly T[], { page, limit }: Asked): T[] =>
  rows.slice((page - 1) * limit, page * limit);
export const whole = (q: Asked, rows: Rows): WrittenEvent[] => sorted(within(q, rows), q);
/** Counts polls: each has its own time. */
export const counter = (): ((q: Asked) => number) => {
  const times = new Set<number>();
  return ({ now }) => times.add(now).size;
};

/** A cache in front of the service, by that key. */
export const cached =
  (ms: number, keyOf: (q: Asked) => readonly unknown[]): Make =>
  () => {
    const cache = new Map<string, { until: number; rows: Rows }>();
    return (q, e) => {
      const key = keyOf(q).join();
      const hit = cache.get(key);
      if (hit && hit.until > q.now) return hit.rows;
      const rows = plainly(q, e);
      cache.set(key, { until: q.now + ms, rows });
      return rows;
    };
  };

const many = (count: number, at: number, prefix: string): WrittenEvent[] =>
  Array.from({ length: count }, (_, i) => ({ id: `${prefix}${i}`, at }));
const day = (n: number): number => Date.UTC(2026, 10, 14) + n * DAY;

/** Sparse rows, bursts, silences of weeks, ties, round times, one heavy day. */
const WORLDS: Record<string, { since: number; events: () => WrittenEvent[] }> = {
  sparse: {
    since: NOON - 150 * DAY,
    events: () => [
      ...spread(1, day(-149), day(-149) + HOUR, 'first'),
      ...spread(40, day(-120), day(-90), 'a'),
      ...many(30, day(-61) + 12345, 't'),
      ...spread(12, day(-30), day(-29), 'b'),
      ...spread(25, day(-6), NOON, 'c'),
    ],
  },
  burst: {
    since: NOON - 100 * DAY,
    events: () => [
      ...spread(500, day(-99), day(-75), 'a'),
      ...spread(4200, day(-50) + 7 * HOUR, day(-50) + 7 * HOUR + 20 * MINUTE, 'b'),
      ...many(1700, day(-35) + 3_456_789, 't'),
      ...spread(900, day(-20), NOON, 'c'),
      ...spread(300, NOON - 2 * HOUR, NOON, 'd'),
    ],
  },
  round: {
    since: day(-60),
    events: () => [
      ...Array.from({ length: 60 * 24 }, (_, i) => ({ id: `h${i}`, at: day(-60) + i * HOUR })),
      ...Array.from({ length: 60 }, (_, i) => many(4, day(i - 59), `m${i}-`)).flat(),
      ...Array.from({ length: 60 }, (_, i) => ({ id: `l${i}`, at: day(i - 59) - 1 })),
      ...many(1200, day(-19), 't'),
      ...Array.from({ length: 600 }, (_, i) => ({ id: `n${i}`, at: NOON - i * MINUTE })),
    ],
  },
  even: { since: NOON - 30 * DAY, events: () => spread(7000, NOON - 30 * DAY, NOON) },
  heavy: {
    since: NOON - 40 * DAY,
    events: () => [...spread(12500, day(-9) + HOUR, day(-8), 'h'), ...spread(200, day(-3), NOON, 'c')],
  },
};

interface Outcome {
  /** Something certified is missing. */
  isUnsound: boolean;
  /** The run after which everything older than 15 minutes was stored and certified; undefined if none. */
  certifiedAt: number | undefined;
}

const POLLS = [0, 5 * MINUTE, 5 * MINUTE, DAY, 5 * MINUTE, 5 * MINUTE, DAY, 20 * MINUTE];

async function trial(make: Make, world: keyof typeof WORLDS): Promise<Outcome> {
  const { since, events } = WORLDS[world] as (typeof WORLDS)[string];
  const serve = make();
  const sync = createWrittenSync(
    { events: events(), answers: (query, seen) => (query.request > 4000 ? refuse(503) : serve(query, seen)) },
    { since },
  );
  const out: Outcome = { isUnsound: false, certifiedAt: undefined };
  for (const [i, ms] of POLLS.entries()) {
    const before = sync.now();
    sync.pass(ms);
    if (ms > 0) {
      // New ones in the time that passed, some at one instant, and some up to eight minutes late.
      sync.events.push(...spread(ms >= DAY ? 150 : 7, before, sync.now(), `new${i}-`));
      sync.events.push(...many(4, Math.floor((sync.now() - ms / 2) / 1000) * 1000, `tie${i}-`));
      sync.events.push(...spread(3, sync.now() - 8 * MINUTE, sync.now() - 2 * MINUTE, `late${i}-`));
    }
    await sync.run();
    out.isUnsound ||= sync.certifiedAndMissing().length > 0;
    const missing = new Set(sync.missing());
    const isWhole = !sync.events.some(({ id, at }) => missing.has(id) && at < sync.now() - 15 * MINUTE);
    const isCurrent = sync.now() - (sync.watermark() ?? since) <= 30 * MINUTE;
    if (isWhole && isCurrent) out.certifiedAt ??= i + 1;
    else out.certifiedAt = undefined;
  }
  return out;
}

/** Worlds, by outcome. */
interface Seen {
  live?: string;
  stuck?: string;
  /** Worlds that are only checked for soundness. */
  soundIn?: string;
  unsound?: string;
}

/** Defines the tests of a service, one for each world. */
export const service = (name: string, seen: Seen, answers: Answers): void => remembering(name, seen, () => answers);

/** The same for a service with state. */
export function remembering(name: string, { live, stuck, soundIn, unsound }: Seen, make: Make): void {
  const worlds = (names = ''): string[] => names.split(' ').filter(Boolean);
  const sound = (outcome: Outcome): void => expect(outcome.isUnsound).toBe(false);
  const complete = (outcome: Outcome): void => expect(outcome.certifiedAt ?? Number.NaN).toBeLessThanOrEqual(4);
  for (const world of worlds(live)) {
    test(`${name}: ${world}`, async () => {
      const outcome = await trial(make, world);
      sound(outcome);
      complete(outcome);
    });
  }
  for (const world of worlds(stuck)) {
    const outcome = once(() => trial(make, world));
    test(`${name}: ${world} is valid`, async () => sound(await outcome()));
    test.fails(`${name}: ${world} is complete`, async () => complete(await outcome()));
  }
  for (const world of worlds(soundIn)) test(`${name}: ${world} is valid`, async () => sound(await trial(make, world)));
  for (const world of worlds(unsound)) test.fails(`${name}: ${world}`, async () => sound(await trial(make, world)));
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}
