import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { openSharedBudgets, type SharedBudgets } from '../../src/cursor/budgets.ts';
import { type Engine, openEngine } from '../support/engine.ts';
import { slotsSuite } from '../support/slots-suite.ts';

/** One row per key, on a real database. */

let skipped = 0;
const now = () => performance.now() + skipped;
let engine: Engine;
let shared: SharedBudgets;
beforeAll(async () => {
  engine = await openEngine();
  shared = openSharedBudgets(engine.db, now);
});
afterAll(async () => {
  await shared.close();
  await engine.close();
});

/** Time passes for a key when all its moments move into the past. */
const passed = (ms: number) => ({
  text: `
    update tributary.budgets set next_at = next_at - d, paused_until = paused_until - d, alone_until = alone_until - d,
      careful_until = careful_until - d, left_at = array(select one - d from unnest(left_at) as one),
      waits_until = array(select one - d from unnest(waits_until) as one)
    from make_interval(secs => $1::float8 / 1000) as d`,
  values: [ms],
});

slotsSuite('the budget that processes share', async () => ({
  open: async (requestsPerSecond) => shared.slots(randomUUID(), requestsPerSecond),
  async pass(ms) {
    await engine.db.query(passed(ms));
    skipped += ms;
  },
  now,
  toleranceMs: 40,
}));
