import { expect, test } from 'vitest';
import { createRandom } from '../../src/sandbox/data/random.ts';
import { parallelism } from '../../src/sync/parallelism.ts';
import type { RunResult } from '../support/memory-sync.ts';
import type { Traits } from '../support/odd-service/traits.ts';
import { createSandboxSync } from '../support/sandbox-sync.ts';

/**
 * A first sync from a service with a latency of 300 ± 100 ms, on a plan of 8 requests a second. Time is simulated:
 * a request leaves in the next free slot of the budget and is answered after its latency.
 */
const GAP_MS = 125;
const ANSWER_MS = 300;
const DAYS = 60;
/** A hundred pages of a hundred rows, which are quick to simulate. */
const [CLICKS, PAGE_ROWS] = [10_000, 100];

async function firstSync(traits: Traits, seed: number) {
  const lanes = parallelism(ANSWER_MS, 1000 / GAP_MS);
  const sync = createSandboxSync({ clicks: CLICKS, days: DAYS, traits, seed }, { lanes, mostRows: PAGE_ROWS });
  const random = createRandom(seed);
  const waiting: { at: number; answer: () => void }[] = [];
  let [now, slot, last, requests] = [0, 0, 0, 0];
  const { page } = sync.api;
  sync.api.page = async (...query) => {
    const at = Math.max(now, slot);
    slot = at + GAP_MS;
    last = at;
    requests += 1;
    const tookMs = random.int(ANSWER_MS - 100, ANSWER_MS + 100);
    await new Promise<void>((answer) => waiting.push({ at: at + tookMs, answer }));
    return page(...query);
  };
  let result: RunResult | undefined;
  const run = sync.run().then((ended) => {
    result = ended;
  });
  while (!result) {
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    const [next] = waiting.sort((a, b) => a.at - b.at);
    if (!next) continue;
    waiting.shift();
    now = next.at;
    next.answer();
  }
  await run;
  expect(result).toMatchObject({ error: undefined, hasDoubts: false });
  expect(sync.missing()).toEqual([]);
  return { requests, use: ((requests - 1) * GAP_MS) / last };
}

test('the budget is used from the first request to the last', async () => {
  const found: Awaited<ReturnType<typeof firstSync>>[] = [];
  for (const seed of [1, 2, 3]) found.push(await firstSync({}, seed));
  const uses = found.map(({ use }) => use).sort((a, b) => a - b);
  // Six sequential queries precede the chains: about a second, whatever follows.
  expect(uses[1]).toBeGreaterThanOrEqual(0.93);
  expect(uses[0]).toBeGreaterThanOrEqual(0.92);
  expect(Math.max(...found.map(({ requests }) => requests))).toBeLessThanOrEqual(115);
});

test('a server that widens bounds to days is not asked for many of them twice', async () => {
  const { requests } = await firstSync({ widen: 'day' }, 1);
  expect(requests).toBeLessThanOrEqual(142);
});
