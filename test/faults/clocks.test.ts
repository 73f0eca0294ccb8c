import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCursor } from '../../src/cursor/cursors.ts';
import { freshPlace } from '../support/cli.ts';
import { configFor, type Engine, openEngine, syncAllDone, withSmallPages } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { listening, passTo } from '../support/front.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { recordCase } from '../support/proof.ts';
import { sandboxWith, smallSandbox } from '../support/sandbox.ts';
import { idsIn, lossesOf } from './losses.ts';
import { isProving, KEY } from './wire-scene.ts';

/** Our clock or the service's is set by an hour. Nothing is certified early, and nothing is lost. */

const HOUR = 3_600_000;
const feed = { source: 'main', stream: 'clicks', sink: 'warehouse' } as const;

const engine = await forThisFile(openEngine());

const through = async ({ db }: Engine): Promise<number> => (await readCursor(db, feed))?.completeThrough ?? 0;

describe("the service's clock", () => {
  let sandbox: Sandbox;
  let front: Server;
  let shift = 0;
  beforeAll(async () => {
    sandbox = await smallSandbox({ rows: { clicks: 300, leads: 10, sales: 5 }, days: 5 });
    front = createServer(
      passTo(sandbox, (headers) => {
        headers.date = new Date(Date.parse(headers.date ?? '') + shift).toUTCString();
      }),
    );
  });
  afterAll(() => void front.close());

  it.each([
    ['an hour ahead', HOUR],
    ['an hour behind', -HOUR],
  ])('%s and then right again loses no event', async (name, ms) => {
    const own = await openEngine();
    const baseUrl = `http://127.0.0.1:${front.listening ? portOf(front) : await listening(front)}`;
    const config = configFor(own, { ...sandbox, baseUrl }, { name: 'main' });
    await syncAllDone(config);
    const before = await through(own);
    shift = ms;
    await syncAllDone(config);
    const meanwhile = await through(own);
    shift = 0;
    // More than a page, all of it younger than what a wrong clock could certify.
    const { service } = sandbox;
    service.arrive('clicks', 1500, { from: service.now() - 60_000, to: service.now() });
    await syncAllDone(config);
    const losses = await lossesOf(sandbox, idsIn(own.db));
    recordCase({ suite: 'wire', name: `the service's clock ${name}`, survived: losses.lost === 0, ...losses });
    expect(meanwhile).toBeGreaterThanOrEqual(before);
    expect(meanwhile).toBeLessThan(Date.now());
    expect(losses).toEqual({ lost: 0, doubled: 0 });
    await own.close();
  });
});

it('a service clock that is ahead is not trusted, even with events at that time: nothing in the future is certified', async () => {
  const sandbox = await sandboxWith(['clockSkew=1h'], { rows: { clicks: 300, leads: 10, sales: 5 }, days: 5 });
  const config = configFor(engine, sandbox, { name: 'ahead' });
  sandbox.service.arrive('clicks', 5, { from: sandbox.service.now() - 60_000, to: sandbox.service.now() });
  await syncAllDone(config);
  const cursor = await readCursor(engine.db, { ...feed, source: 'ahead' });
  expect(cursor?.completeThrough).toBeGreaterThan(Date.now() - HOUR);
  expect(cursor?.completeThrough).toBeLessThanOrEqual(Date.now());
});

describe('our own clock is set in the middle of a run', () => {
  const PRELOAD = `--import ${pathToFileURL('test/faults/jumping-clock.mjs').href}`;
  const JUMPS: Array<[string, number]> = [
    ['an hour back', -HOUR],
    ['an hour ahead', HOUR],
  ];

  it.each(isProving ? JUMPS : JUMPS.slice(0, 1))('%s', async (name, ms) => {
    const [own, place] = await Promise.all([openEngine(), freshPlace()]);
    const sandbox = await smallSandbox({ apiKey: KEY, rows: { clicks: 400, leads: 20, sales: 10 }, days: 5 });
    const { service } = sandbox;
    service.faults.add({ delayMs: 40, times: 100_000 });
    const source = { baseUrl: sandbox.baseUrl, apiKey: KEY, plan: 'enterprise', requestsPerSecond: 500, since: '30d' };
    const sinks = { warehouse: { type: 'postgres' }, lake: { type: 'parquet', path: './lake' } };
    await place.config(JSON.stringify({ sources: { main: source }, sinks, state: { url: own.url } }));
    await withSmallPages(own.db, configFor(own, sandbox, { name: 'main' }), 25);
    const env = { NODE_OPTIONS: PRELOAD, CLOCK_JUMP_MS: String(ms) };
    const child = place.start(['sync', '--config', 't.yaml'], env);
    while (service.requests.length < 12) await sleep(5);
    child.child.kill('SIGUSR2');
    const first = await child.done;
    const atWork = service.requests.length;
    const reached = await through(own);
    service.faults.clear();
    service.arrive('clicks', 50, { from: service.now() - 60_000, to: service.now() });
    const second = await place.run(['sync', '--config', 't.yaml'], { ...env, CLOCK_JUMPED: 'yes' });
    const losses = await lossesOf(sandbox, idsIn(own.db));
    recordCase({
      suite: 'wire',
      name: `our clock ${name}`,
      survived: first.code === 0 && second.code === 0,
      ...losses,
    });
    expect([first.code, second.code], first.stderr + second.stderr).toEqual([0, 0]);
    expect(atWork).toBeGreaterThan(12);
    // By the service's clock, whatever ours shows: the settle time is ten minutes.
    expect(Math.abs(service.now() - 600_000 - reached)).toBeLessThan(120_000);
    expect(losses).toEqual({ lost: 0, doubled: 0 });
    await own.close();
  });
});

const portOf = (server: Server): number => {
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
};
