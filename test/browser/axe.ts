import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const { source } = createRequire(import.meta.url)('axe-core') as { source: string };

/** Contrast takes most of the time, so some tests leave it out. */
const OPTIONS = {
  all: {},
  contrast: { runOnly: ['color-contrast'] },
  'all but contrast': { rules: { 'color-contrast': { enabled: false } } },
};

/** The accessibility faults of the page as it is now, each with its element; empty if there are none. */
export async function axeFaults(page: Page, checks: keyof typeof OPTIONS = 'all'): Promise<string[]> {
  // Injected through the debugger: the content security policy blocks foreign scripts.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(source);
  const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(OPTIONS[checks])})`)) as AxeResults;
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${help}: ${html.slice(0, 160)} ${any.map(({ message }) => message).join()}`),
  );
}
