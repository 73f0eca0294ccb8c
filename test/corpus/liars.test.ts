import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/index.ts';
import { type Engine, openEngine, statesOf, storedIds, sync } from '../support/engine.ts';
import { serve } from '../support/http-server.ts';
import { proveCase, rowsOf } from '../support/proof.ts';
import { newSource } from '../support/sink-harness.ts';
import { SERVICE_NOW } from './corpus.ts';

/**
 * A record with a false time must prove nothing: at the edge of a page it would certify everything between
 * it and the rest. Three pages of events; the record is inside a page, at the edge of the newest or oldest page, or at either end.
 */

const EVENTS = 3000;
const LIES = ['1969-01-01T00:00:00Z', '2027-06-01T00:00:00Z'];
const PLACES = [0, 300, 999, 2000, 2900, EVENTS - 1];

let engine: Engine;
let honest: number | undefined;
beforeAll(async () => {
  engine = await openEngine();
});
afterAll(() => engine.close());

it.each(LIES.flatMap((lie) => PLACES.map((place) => [lie, place] as const)))(
  'a time of %s at place %i loses no event',
  async (lie, place) => {
    honest ??= (await syncWith()).requests;
    const most = honest;
    const { states, stored, wanted, requests } = await syncWith({ lie, place });
    await proveCase({ suite: 'bad input', name: `${lie} at ${place}`, ...rowsOf(wanted, stored) }, () => {
      expect(states).toEqual(['done']);
      expect(stored).toEqual(wanted.sort());
      // The requests without the false time, and a few more.
      expect(requests - most).toBeLessThan(6);
    });
  },
);

async function syncWith(liar?: { lie: string; place: number }) {
  const events = Array.from({ length: EVENTS }, (_, i) => ({
    at: SERVICE_NOW - 86_400_000 - i * 60_000,
    id: `e${i}`,
  }));
  const { baseUrl, seen } = await serve((request, response) => {
    const query = new URL(request.url ?? '', 'http://service').searchParams;
    const [start = 0, end = 0] = ['start', 'end'].map((name) => Date.parse(query.get(name) ?? ''));
    const limit = Number(query.get('limit'));
    const from = (Number(query.get('page')) - 1) * limit;
    const found = events.filter(({ at }) => at >= start && at <= end);
    if (query.get('sortOrder') === 'asc') found.reverse();
    const page = found.slice(from, from + limit).map(({ id, at }) => ({
      eventId: id,
      timestamp: id === `e${liar?.place}` ? liar?.lie : new Date(at).toISOString(),
    }));
    response.setHeader('date', new Date(SERVICE_NOW).toUTCString());
    response.end(JSON.stringify(page));
  });
  const source = newSource();
  // Starts shortly before the first event: covering silences is tested elsewhere.
  const settings = { baseUrl, apiKey: source, plan: 'enterprise', requestsPerSecond: 1000, since: '2026-11-12' };
  const text = JSON.stringify({
    sources: { [source]: { ...settings, streams: { leads: {} } } },
    state: { url: engine.url },
  });
  const { config } = parseConfig(text, 'liars.yaml', {});
  const states = statesOf(await sync(config));
  const stored = await storedIds(engine.db, config, 'leads');
  return { states, stored, wanted: events.map(({ id }) => id), requests: seen.length };
}
