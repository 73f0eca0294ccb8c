import { afterAll, describe, expect, it } from 'vitest';
import { goTo, hasBrowser, visit } from '../support/browser.ts';
import { overprints } from '../support/overprints.ts';
import { SCENES } from '../support/page-data.ts';
import { servePage } from '../support/page-server.ts';
import { VIEWS } from '../support/page-views.ts';

/** Where the browser puts the texts, by its own measure: none over another, in every view, whatever there is to show. */

const WIDTHS = [390, 1024, 1280, 1920];

const closers: Array<() => Promise<void>> = [];
afterAll(() => Promise.all(closers.map((close) => close())));

describe.skipIf(!hasBrowser).each(SCENES)('the page: %s', (scene) => {
  it('prints no text over another, at the width of a phone, a tablet and two desks', async () => {
    const server = await servePage({ sources: 2, days: 320, runDays: 23, scene });
    closers.push(server.close);
    const { page, context } = await visit(server.baseUrl);
    const found: string[] = [];
    for (const [name, hash] of Object.entries(VIEWS)) {
      await goTo(page, hash);
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        found.push(...(await overprints(page)).map((pair) => `${name} at ${width}: ${pair}`));
      }
    }
    expect(found).toEqual([]);
    await context.close();
  }, 120_000);
});
