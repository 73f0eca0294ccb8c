import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const { source } = createRequire(import.meta.url)('axe-core') as { source: string };

/** Contrast takes most of the time. */
const OPTIONS = {
  all: {},
  contrast: { runOnly: ['color-contrast'] },
  'all but contrast': { rules: { 'color-contrast': { enabled: false } } },
};

/** What an accessibility check finds wrong with the page as it is now, with the element it is about; nothing when all is well. */
export async function axeFaults(page: Page, checks: keyof typeof OPTIONS = 'all'): Promise<string[]> {
  // By the debugger: the content policy lets no script in but the page's own.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(source);
  const { violations } = (await page.evaluate(`axe.run(${JSON.stringify(OPTIONS[checks])})`)) as AxeResults;
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${help}: ${html.slice(0, 160)} ${any.map(({ message }) => message).join()}`),
  );
}
