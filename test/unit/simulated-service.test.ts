import { describe, expect, test } from 'vitest';
import { type EventsQuery, toSearchParams } from '../../src/api/query.ts';
import { createRandom } from '../../src/sandbox/random.ts';
import { createSandboxService } from '../../src/sandbox/service.ts';
import type { Traits } from '../../src/sandbox/traits.ts';
import { createSimulatedService, PLAIN, type ServiceTraits } from '../support/simulated-service.ts';

const NOON = Date.UTC(2026, 10, 14, 12);
const HOUR = 3_600_000;

/** The fake passes the same suite as the real thing: here, it gives the very same pages as the sandbox does. */
describe('the simulated service pages as the sandbox does', () => {
  const cases: [string, Traits, Partial<ServiceTraits>][] = [
    ['by contract', {}, {}],
    ['bounds inclusive', { bounds: 'inclusive' }, { endIncluded: true }],
    ['bounds exclusive', { bounds: 'exclusive' }, { startIncluded: false }],
    ['bounds exclusive at the start', { bounds: 'exclusive-start' }, { startIncluded: false, endIncluded: true }],
    ['widened to days', { widen: 'day' }, { widen: true }],
    ['the last page for ever', { lastPage: 'repeat' }, { repeatsLastPage: true }],
    ['deep pages fail', { deepPages: 'fail@2' }, { deepestPage: 2 }],
  ];

  test.each(cases)('%s', async (_name, sandboxTraits, traits) => {
    const { sandbox, simulated, instants } = twins(sandboxTraits, { ...PLAIN, ...traits });
    const random = createRandom(7);
    for (let i = 0; i < 60; i++) {
      const [a, b] = [random.pick(instants), random.pick(instants)];
      const query: EventsQuery = {
        stream: 'clicks',
        start: Math.min(a, b),
        end: Math.max(a, b),
        sortOrder: random.pick(['asc', 'desc']),
        page: random.int(1, 4),
        limit: random.int(1, 12),
        filters: {},
      };
      expect(await simulated(query), JSON.stringify(query)).toEqual(sandbox(query));
    }
  });
});

/** The same events in both: some tied, over two days. Both answer with ids, or with what they threw. */
function twins(sandboxTraits: Traits, traits: ServiceTraits) {
  const random = createRandom(3);
  const service = createSandboxService({
    rows: { clicks: 0, leads: 0, sales: 0 },
    traits: sandboxTraits,
    now: () => NOON,
  });
  const fake = createSimulatedService(random, NOON);
  fake.traits = traits;
  const instants = Array.from({ length: 25 }, () => NOON - random.int(0, 40) * HOUR);
  for (const [order, at] of [...instants, ...instants.slice(0, 8)].entries()) {
    const id = `click_${order}`;
    service.add('clicks', { event: 'click', timestamp: new Date(at).toISOString(), click: { id } });
    fake.store.add({ id, at, order, hidden: false, poison: false, bornAt: 0, goneAt: undefined });
  }
  const sandbox = (query: EventsQuery): unknown => {
    try {
      const records = JSON.parse(service.list(toSearchParams(query)).body) as { click: { id: string } }[];
      return records.map((record) => record.click.id);
    } catch {
      return 'fails';
    }
  };
  const simulated = async (query: EventsQuery): Promise<unknown> => {
    try {
      const { records } = await fake.page(query, { lane: 'fresh' });
      return records.map((record) => (record as [string, number])[0]);
    } catch {
      return 'fails';
    }
  };
  return { sandbox, simulated, instants: [...instants, ...instants.map((at) => at + 1)] };
}
