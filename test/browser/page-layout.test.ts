import type { Page } from 'playwright-core';
import { afterAll, describe, expect, it } from 'vitest';
import { goTo, hasBrowser, visit } from './browser.ts';
import { SCENES, VIEWS } from './page-data.ts';
import { servePage } from './page-server.ts';

/** Which texts of the page overlap in the browser's layout: `"1.2M" over "done"`. */
const overprints = (page: Page): Promise<string[]> => page.evaluate(OVERPRINTS) as Promise<string[]>;

/** Runs in the browser. Boxes of adjacent lines touch, so only an overlap of a good part of their height counts. */
const OVERPRINTS = `(() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const boxes = [];
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node.nodeValue.trim();
    const parent = node.parentElement;
    if (text === '' || !parent.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (parent.closest('.spoken, .skip, noscript, option, .said, dialog')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    // Text scrolled out of its container is not visible.
    const frame = parent.closest('.scroll')?.getBoundingClientRect();
    const isOut = (box) => frame && (box.top >= frame.bottom || box.bottom <= frame.top);
    for (const box of range.getClientRects()) if (isOut(box)) continue; else if (box.width > 1 && box.height > 1) boxes.push({ text, box });
  }
  boxes.sort((a, b) => a.box.top - b.box.top);
  const found = new Set();
  boxes.forEach(({ text, box }, i) => {
    for (let j = i + 1; j < boxes.length && boxes[j].box.top < box.bottom; j++) {
      const other = boxes[j].box;
      const wide = Math.min(box.right, other.right) - Math.max(box.left, other.left);
      const high = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
      if (wide > 1.5 && high > 0.35 * Math.min(box.height, other.height))
        found.add('"' + text.slice(0, 40) + '" over "' + boxes[j].text.slice(0, 40) + '"');
    }
  });
  return [...found];
})()`;

/** Measures text positions in the browser: no texts overlap in any view, whatever its data. */

const WIDTHS = [390, 1024, 1280, 1920];

const closers: Array<() => Promise<void>> = [];
afterAll(() => Promise.all(closers.map((close) => close())));

describe.skipIf(!hasBrowser).each(SCENES)('the page: %s', (scene) => {
  it('prints no text over another at the width of a phone, a tablet and two desktops', async () => {
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
