import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { hasBrowser, settled, visit } from './browser.ts';
import type { Size } from './page-data.ts';
import { type PageServer, servePage } from './page-server.ts';

/** One source with a month of uniform days, and five with three years of days whose state changes every other day. */
const SMALL: Size = { sources: 1, days: 30, runDays: 30 };
const LARGE: Size = { sources: 5, days: 3 * 365, runDays: 1 };

interface Measured {
  nodes: number;
  heapBytes: number;
  /** The same after five redraws by live updates: a leak accumulates here. */
  nodesLater: number;
  /** Since the start of the load, by the browser's clock. */
  firstPaintMs: number;
  shownMs: number;
}

const servers: PageServer[] = [];
afterAll(() => Promise.all(servers.map((server) => server.close())));

async function measure(size: Size, hash: string): Promise<Measured> {
  const server = await servePage(size);
  servers.push(server);
  const { page, context } = await visit(`${server.baseUrl}/${hash}`);
  await settled(page);
  const shownMs = (await page.evaluate('performance.now()')) as number;
  const firstPaintMs = (await page.evaluate(
    'performance.getEntriesByName("first-contentful-paint")[0].startTime',
  )) as number;
  const session = await context.newCDPSession(page);
  /** The minimum of a few counts: on a busy machine, garbage is not collected at the first attempt. */
  const countNodes = async (): Promise<number> => {
    const counts: number[] = [];
    for (let i = 0; i < 5; i++) {
      await session.send('HeapProfiler.collectGarbage');
      counts.push((await session.send('Memory.getDOMCounters')).nodes);
      await sleep(100);
    }
    return Math.min(...counts);
  };
  const nodes = await countNodes();
  for (let i = 0; i < 5; i++) {
    const asked = page.waitForResponse((response) => response.url().includes('/api/coverage'));
    server.send('changed', { topics: ['coverage'] });
    await asked;
    await settled(page);
  }
  const nodesLater = await countNodes();
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await context.close();
  return { nodes, nodesLater, heapBytes: usedSize, firstPaintMs, shownMs };
}

describe.skipIf(!hasBrowser)('five sources of three streams and three years of days', () => {
  it.each([
    ['all streams', '#/', 4000],
    ['one stream by the year', '#/stream/main/clicks?zoom=year', 2000],
  ])('stay small: %s', async (_, hash, mostNodes) => {
    const small = await measure(SMALL, hash);
    const large = await measure(LARGE, hash);
    // 15 times the streams and 36 times the days: a page that drew every day would have 16,000 elements for them alone.
    expect(large.nodes).toBeLessThan(mostNodes);
    // The page keeps the rows of three years of days for the calendar; drawing them all would take far more.
    expect(large.heapBytes / small.heapBytes).toBeLessThan(2.5);
    expect(large.nodesLater / large.nodes).toBeLessThan(1.05);
    // The first paint precedes all data, so its time does not depend on their amount.
    expect(large.firstPaintMs).toBeLessThan(large.shownMs);
  });
});
