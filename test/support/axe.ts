import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const { source } = createRequire(import.meta.url)('axe-core') as { source: string };

/** What an accessibility check finds wrong with the page as it is now, with the element it is about; nothing when all is well. All rules, unless some are named. */
export async function axeFaults(page: Page, rules: readonly string[] = []): Promise<string[]> {
  // By the debugger: the content policy lets no script in but the page's own.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(source);
  const { violations } = (await page.evaluate(
    `axe.run(${rules.length > 0 ? JSON.stringify({ runOnly: rules }) : ''})`,
  )) as AxeResults;
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${help}: ${html.slice(0, 160)} ${any.map(({ message }) => message).join()}`),
  );
}
