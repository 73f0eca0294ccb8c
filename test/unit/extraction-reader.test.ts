import { describe, expect, test } from 'vitest';
import { UNKNOWN_PROFILE } from '../../src/extract/profile.ts';
import { createReader, type Profile, type Slice } from '../../src/extract/reader.ts';
import type { Instant } from '../../src/model/instant.ts';
import { DAY_MS, holds, type Window } from '../../src/model/window.ts';
import { createRandom } from '../../src/sandbox/data/random.ts';
import {
  createSimulatedService,
  flattenPair,
  type SimulatedEvent,
  type SimulatedService,
} from '../support/simulated-service.ts';

const NOW = Date.UTC(2026, 10, 14, 12);
const MIDNIGHT = Date.UTC(2026, 10, 13);
const HOUR = 3_600_000;

function serviceWith(events: readonly (Partial<SimulatedEvent> & { id: string; at: Instant })[]): SimulatedService {
  const service = createSimulatedService({ random: createRandom(1), start: NOW });
  for (const [order, event] of events.entries()) {
    service.store.add({
      order,
      hidden: false,
      poison: false,
      fragile: false,
      arrivedAt: 0,
      goneAt: undefined,
      ...event,
    });
  }
  return service;
}

async function sweep(service: SimulatedService, window: Window, profile: Profile): Promise<Slice[]> {
  const { pageRows: mostRows } = profile;
  const reader = createReader({
    api: service,
    stream: 'clicks',
    filters: {},
    flatten: flattenPair,
    profile,
    mostRows,
    now: service.ourNow,
    settleMs: 600_000,
  });
  const slices: Slice[] = [];
  const request = { lane: 'fresh', signal: new AbortController().signal } as const;
  for await (const slice of reader.sweep({ window, ...request })) slices.push(slice);
  return slices;
}

/** Visible events in a certified slice that were never delivered. */
function wronglyCertified(service: SimulatedService, slices: readonly Slice[]): string[] {
  const delivered = new Set(slices.flatMap(({ rows }) => rows.map(({ id }) => id)));
  const isCertified = (at: Instant): boolean =>
    slices.some(({ window, certified }) => certified && window !== undefined && holds(window, at));
  return service.store
    .alive()
    .filter(({ id, at, hidden, poison }) => !hidden && !poison && isCertified(at) && !delivered.has(id))
    .map(({ id }) => id);
}

describe('combinations too rare for the simulation', () => {
  test('a server that stops widening bounds to days: nothing before noon is lost', async () => {
    const events = Array.from({ length: 20 }, (_, hour) => ({ id: `e${hour}`, at: MIDNIGHT + hour * HOUR }));
    const service = serviceWith(events);
    const profile: Profile = { ...UNKNOWN_PROFILE, granularity: 'day', tickMs: 1, pageRows: 8 };
    const slices = await sweep(service, { start: MIDNIGHT, end: MIDNIGHT + DAY_MS }, profile);
    expect(slices.every(({ certified, window }) => certified || window === undefined)).toBe(true);
    expect(wronglyCertified(service, slices)).toEqual([]);
  });

  test('poison behind a run of hidden rows, and rows deleted during the search: not certified', async () => {
    const at = (i: number): Instant => MIDNIGHT + i * 1000;
    const run = (name: string, length: number, start: number) =>
      Array.from({ length }, (_, i) => ({ id: `${name}${i}`, at: at(start + i), hidden: name !== 'later' }));
    const lonely = { id: 'lonely', at: at(30) };
    const poison = { id: 'poison', at: at(50), poison: true };
    const first = { id: 'first', at: at(0) };
    const service = serviceWith([
      first,
      ...run('h', 19, 1),
      lonely,
      ...run('k', 10, 31),
      poison,
      ...run('later', 40, 60),
    ]);
    let isFirst = true;
    service.onRequest = ({ page }) => {
      if (page < 2 || !isFirst) return;
      isFirst = false;
      // Deleting nine rows before it between two pages makes both pages miss the lonely row.
      for (const event of service.store.alive().filter(({ id }) => /^h[0-8]$/.test(id))) {
        service.store.remove(event, service.now());
      }
    };
    const profile: Profile = { ...UNKNOWN_PROFILE, tickMs: 1, pageRows: 17 };
    const slices = await sweep(service, { start: MIDNIGHT, end: MIDNIGHT + DAY_MS }, profile);
    expect(wronglyCertified(service, slices)).toEqual([]);
    expect(slices.some(({ certified, window }) => window && !certified)).toBe(true);
  });
});
