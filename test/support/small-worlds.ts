import { UNKNOWN_PROFILE } from '../../src/extract/profile.ts';
import { createReader, type Slice } from '../../src/extract/reader.ts';
import { RetryLater, StopStream } from '../../src/model/errors.ts';
import { createRandom } from '../../src/sandbox/random.ts';
import type { Traits } from '../../src/sandbox/traits.ts';
import { createSimulatedService, flattenPair, type SimulatedService } from './simulated-service.ts';

/** A world small enough that all of its kind can be tried: a few rows on a few instants, one way of answering, and what happens once. */
export interface SmallWorld {
  /** How many rows each instant has. */
  rows: readonly number[];
  pageRows: number;
  behaviour: string;
  traits: Traits;
  /** Before this request, this row is deleted, hidden, or comes to be. */
  event?: { what: 'deleted' | 'hidden' | 'added'; row: number; request: number } | undefined;
}

const NOW = Date.UTC(2026, 10, 14, 12);
const HOUR = 3_600_000;
/** Far enough apart for hours and days to fall between them. */
const INSTANTS = [NOW - 40 * HOUR, NOW - 39.5 * HOUR, NOW - 20 * HOUR];
const WINDOW = { start: NOW - 50 * HOUR, end: NOW - HOUR };

/** The lattice of docs/extraction.md, each alone and some together. */
export const BEHAVIOURS: Readonly<Record<string, Traits>> = {
  calm: {},
  'bounds exclusive': { bounds: 'exclusive' },
  'bounds inclusive': { bounds: 'inclusive' },
  'start widened to the day': { widenStart: 'day' },
  'start widened to the day, UTC-8': { widenStart: 'day@-8' },
  'start widened to the hour': { widenStart: 'hour' },
  'end widened to the day': { widenEnd: 'day' },
  'both widened to the day, UTC+9': { widen: 'day@9' },
  'start rounded up to the hour': { roundStart: 'hour' },
  'start rounded up to the day': { roundStart: 'day' },
  'bounds ignored': { ignoreBounds: 'both' },
  'ties shuffled': { shuffleTies: true },
  'ties by page and limit': { pagedTies: true },
  'ties shuffled, start widened': { shuffleTies: true, widenStart: 'day' },
  'ties by page and limit, start widened': { pagedTies: true, widenStart: 'day' },
  'order ignored': { sortOrder: 'ignored' },
  'order reversed': { sortOrder: 'opposite' },
  'order now and then reversed': { sortOrder: 'sometimes' },
  'limit capped': { limitCap: 2 },
  'limit capped, start widened': { limitCap: 2, widenStart: 'day' },
  'page ignored': { ignorePage: true },
  'page ignored, start widened': { ignorePage: true, widenStart: 'day' },
  'deep pages fail': { deepPages: 'fail@1' },
  'deep pages are empty': { deepPages: 'empty@1' },
  'deep pages repeat': { deepPages: 'repeat@1' },
  'deep pages fail, start widened': { deepPages: 'fail@1', widenStart: 'day' },
  'last page repeats': { lastPage: 'repeat', widenStart: 'day' },
  'every third answer is empty': { emptyAnswers: 'every:3' },
  'rows repeated': { repeatRows: 0.3 },
  'rows out of range': { strays: 0.3 },
};

/** Every distribution of up to `most` rows over the instants. */
function* distributions(most: number, instants = INSTANTS.length): Generator<number[]> {
  if (instants === 0) return yield [];
  for (let count = 0; count <= most; count++) {
    for (const rest of distributions(most - count, instants - 1)) yield [count, ...rest];
  }
}

export function* smallWorlds(): Generator<SmallWorld> {
  for (const [behaviour, traits] of Object.entries(BEHAVIOURS)) {
    for (const pageRows of [2, 3]) {
      for (const rows of distributions(6)) {
        const world = { rows, pageRows, behaviour, traits };
        yield world;
        const total = rows.reduce((sum, count) => sum + count, 0);
        for (const what of ['deleted', 'hidden', 'added'] as const) {
          for (let row = 0; row < total; row += 2)
            for (const request of [2, 4, 7]) yield { ...world, event: { what, row, request } };
        }
      }
    }
  }
}

export interface SmallResult {
  /** Rows that were visible all the while, lie in a certified slice, and were never delivered. */
  missing: string[];
  certifiedMs: number;
  requests: number;
}

/** Reads the window once; what ends a run in the field ends it here. */
export async function readSmallWorld(world: SmallWorld): Promise<SmallResult> {
  const { service, steady } = serviceOf(world);
  const profile = { ...UNKNOWN_PROFILE, pageRows: world.pageRows };
  const options = { api: service, stream: 'clicks', filters: {}, flatten: flattenPair, now: service.ourNow } as const;
  const reader = createReader({ ...options, profile, mostRows: world.pageRows, settleMs: 0 });
  const delivered = new Set<string>();
  const certified: Slice[] = [];
  try {
    for await (const slice of reader.sweep({ window: WINDOW, lane: 'fresh', signal: new AbortController().signal })) {
      for (const { id } of slice.rows) delivered.add(id);
      if (slice.certified) certified.push(slice);
    }
  } catch (error) {
    if (!(error instanceof RetryLater) && !(error instanceof StopStream)) throw error;
  }
  const holds = (at: number): boolean =>
    certified.some(({ window }) => window && at >= window.start && at < window.end);
  return {
    missing: steady.filter(({ id, at }) => holds(at) && !delivered.has(id)).map(({ id }) => id),
    certifiedMs: certified.reduce((sum, { window }) => sum + (window ? window.end - window.start : 0), 0),
    requests: service.requests(),
  };
}

function serviceOf({ rows, traits, event }: SmallWorld): {
  service: SimulatedService;
  steady: { id: string; at: number }[];
} {
  const service = createSimulatedService({ random: createRandom(1), start: NOW, traits });
  const all = rows.flatMap((count, i) =>
    Array.from({ length: count }, (_, j) => ({ id: `r${i}.${j}`, at: INSTANTS[i] ?? NOW })),
  );
  const plain = { hidden: false, poison: false, fragile: false, arrivedAt: 0, goneAt: undefined };
  for (const [order, row] of all.entries()) {
    if (event?.what !== 'added' || order !== event.row) service.store.add({ ...plain, ...row, order });
  }
  const moved = event && all[event.row];
  service.onRequest = () => {
    if (!event || !moved || service.requests() !== event.request) return;
    const found = service.store.alive().find(({ id }) => id === moved.id);
    if (event.what === 'added') service.store.add({ ...plain, ...moved, order: event.row });
    else if (found && event.what === 'deleted') service.store.remove(found, service.now());
    else if (found) service.store.hide(found, service.now());
  };
  return { service, steady: all.filter((row) => row !== moved) };
}
