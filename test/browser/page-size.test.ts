import { afterAll, describe, expect, it } from 'vitest';
import { settled, visit } from '../support/browser.ts';
import { type PageServer, servePage } from '../support/page-server.ts';
import type { Size } from '../support/page-data.ts';

/** One quiet source of a month, and five of three years whose days change their state every other day. */
const SMALL: Size = { sources: 1, days: 30, runDays: 30 };
const LARGE: Size = { sources: 5, days: 3 * 365, runDays: 1 };

interface Measured {
  nodes: number;
  heapBytes: number;
  /** From the beginning of the load, by the browser's own clock. */
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
  // Drawn again and again by news: what is not let go of piles up here.
  for (let i = 0; i < 5; i++) {
    const asked = page.waitForResponse((response) => response.url().includes('/api/coverage'));
    server.tell('changed', { topics: ['coverage'] });
    await asked;
    await settled(page);
  }
  const session = await context.newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const counters = await session.send('Memory.getDOMCounters');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  const firstPaintMs = (await page.evaluate(
    'performance.getEntriesByName("first-contentful-paint")[0].startTime',
  )) as number;
  await context.close();
  return { nodes: counters.nodes, heapBytes: usedSize, firstPaintMs, shownMs };
}

describe('five sources of three streams and three years of days', () => {
  it.each([
    ['all streams', '#/', 12_000],
    ['one stream by the year', '#/stream/main/clicks?zoom=year', 6_000],
    ['one stream in all', '#/stream/main/clicks?zoom=all', 4_000],
  ])('%s stay small', async (name, hash, mostNodes) => {
    const small = await measure(SMALL, hash);
    const large = await measure(LARGE, hash);
    const ratio = (of: keyof Measured): number => Number((large[of] / small[of]).toFixed(2));
    const ratios = { nodes: ratio('nodes'), heap: ratio('heapBytes'), paint: ratio('firstPaintMs'), shown: ratio('shownMs') };
    console.error(name, small, large, ratios);
    // 15 times the streams and 36 times the days: a page that drew every day of all would have 16,000 elements for them alone.
    expect(large.nodes).toBeLessThan(mostNodes);
    expect(ratios.heap).toBeLessThan(4);
    // What is painted first does not wait for data, so it does not care how much there is.
    expect(ratios.paint).toBeLessThan(3);
  });
});
