import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { Lane } from '../../src/api/budget.ts';
import { keyHashOf, readBudgetUse } from '../../src/cursor/budgets.ts';
import { budgetUse, countOf, kill, laneShare, startProcesses } from '../support/budget-processes.ts';
import { type Engine, openEngine } from '../support/engine.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { ask, smallSandbox } from '../support/sandbox.ts';

/** Several real processes with one key, against a service that allows a fixed number of requests in any sliding second. */

const PER_SECOND = 4;
let engine: Engine;
let children: ChildProcess[] = [];
beforeAll(async () => {
  engine = await openEngine();
});
afterEach(async () => {
  await kill(children);
  children = [];
});
afterAll(() => engine.close());

async function crowd(apiKey: string, lanes: readonly Lane[]): Promise<Sandbox> {
  const sandbox = await smallSandbox({
    apiKey,
    requestsPerSecond: PER_SECOND,
    rows: { clicks: 20, leads: 20, sales: 20 },
  });
  const { baseUrl } = sandbox;
  const shared = { databaseUrl: engine.url, baseUrl, apiKey, requestsPerSecond: PER_SECOND };
  children = await startProcesses(lanes.map((lane) => ({ ...shared, lanes: [lane] })));
  return sandbox;
}

/** The requests that arrive during the given time. */
async function listen({ service: { log } }: Sandbox, seconds: number) {
  const from = log.entries.length;
  await sleep(seconds * 1000);
  return log.entries.slice(from).filter(({ status }) => status > 0);
}

const usedBy = async (key: string, span: { minutes: number; step: number }) =>
  (await readBudgetUse(engine.db, span)).filter(({ keyHash }) => keyHash === key);

it('three workers and a backfill share one budget: no 429, nearly all of it used, fresh requests first', async () => {
  const sandbox = await crowd('key-of-four', ['fresh', 'fresh', 'fresh', 'backfill']);
  const log = await listen(sandbox, 12);
  // On an idle machine no 429, and 0.96 of the budget (docs/scaling.md#one-budget). Beside the rest of the suite, a process may be delayed
  // between its slot and its request: one 429 at most, not the dozens that four processes get without sharing.
  expect(countOf(log, 429)).toBeLessThanOrEqual(1);
  expect(budgetUse(log, PER_SECOND)).toBeGreaterThanOrEqual(countOf(log, 429) === 0 ? 0.85 : 0.6);
  expect(budgetUse(log, PER_SECOND)).toBeLessThanOrEqual(1.01);
  expect(laneShare(log, 'backfill')).toBeGreaterThanOrEqual(0.2);
  expect(laneShare(log, 'fresh')).toBeGreaterThanOrEqual(0.7);
  // The stored budget agrees with the service, and holds only a digest of the key.
  const [use] = await usedBy(keyHashOf('key-of-four'), { minutes: 2, step: 2 });
  const seen = sandbox.service.log.entries.length;
  // Each of the four may hold a slot for its next request, and one request may be in flight.
  expect(Math.abs((use?.requests ?? 0) - seen)).toBeLessThanOrEqual(5);
  expect(use).toMatchObject({ perSecond: PER_SECOND, tooManyRequests: countOf(log, 429) });
  const rows = await engine.db.query({
    text: 'select b::text, u::text from tributary.budgets b, tributary.budget_use u',
  });
  expect(JSON.stringify(rows)).not.toContain('key-of-four');
});

it('a killed process reduces the pace only briefly', async () => {
  const sandbox = await crowd('key-of-the-killed', ['fresh', 'fresh', 'backfill']);
  await sleep(2000);
  await kill(children.splice(0, 1));
  const log = await listen(sandbox, 6);
  expect(budgetUse(log, PER_SECOND)).toBeGreaterThanOrEqual(countOf(log, 429) === 0 ? 0.8 : 0.5);
});

it('another client uses up the budget: all pause together, probe one at a time, and regain full speed when it stops', async () => {
  const sandbox = await crowd('key-of-two-owners', ['fresh', 'fresh', 'fresh', 'backfill']);
  await sleep(2000);
  const stop = new AbortController();
  const { log } = sandbox.service;
  const from = log.entries.length;
  // Recognized by its limit, which no other client sends.
  const eating = (async () => {
    while (!stop.signal.aborted) {
      await ask(sandbox, { event: 'clicks', limit: 1 });
      await sleep(40);
    }
  })();
  await sleep(6000);
  stop.abort();
  await eating;
  const ours = log.entries.slice(from).filter(({ query }) => query.limit !== '1');
  const refused = countOf(ours, 429);
  // Each pause lasts a second or more and ends with one probe, not with four requests from each of four processes.
  expect(refused).toBeGreaterThanOrEqual(2);
  expect(refused).toBeLessThanOrEqual(12);
  const [use] = await usedBy(keyHashOf('key-of-two-owners'), { minutes: 2, step: 2 });
  expect(use?.tooManyRequests).toBeGreaterThanOrEqual(refused - 1);
  expect(use?.pauses).toBeGreaterThanOrEqual(1);

  // The first seconds are slow by design. Ten seconds after the last pause, only one wide gap remains.
  const slow = await listen(sandbox, 3);
  expect(budgetUse(slow, PER_SECOND)).toBeLessThan(0.9);
  const [paused] = await engine.db.query<{ forMs: number }>({
    text: `
      select (extract(epoch from paused_until - clock_timestamp()) * 1000)::float8 as "forMs"
      from tributary.budgets where key_hash = $1`,
    values: [keyHashOf('key-of-two-owners')],
  });
  await sleep((paused?.forMs ?? 0) + 11_000);
  const after = await listen(sandbox, 6);
  expect(countOf(after, 429)).toBeLessThanOrEqual(1);
  expect(budgetUse(after, PER_SECOND)).toBeGreaterThanOrEqual(countOf(after, 429) === 0 ? 0.8 : 0.5);
});
