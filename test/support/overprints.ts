import type { Page } from 'playwright-core';

/** Which texts of the page lie over each other, as the browser has laid them out: `"1.2M" over "done"`. */
export const overprints = (page: Page): Promise<string[]> => page.evaluate(OVERPRINTS) as Promise<string[]>;

/** Runs in the browser. Boxes of adjacent lines touch, so only those count that share a good part of their height. */
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
    for (const box of range.getClientRects()) if (box.width > 1 && box.height > 1) boxes.push({ text, box });
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
