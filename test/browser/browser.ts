import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, inject } from 'vitest';

/** Longer than any step takes on a slow machine, and shorter than the test timeout. */
const WAIT_MS = 20_000;

/** Whether this machine has a browser; tests that need one are skipped without it. */
export const hasBrowser = inject('browserUrl') !== '';

let shared: Promise<Browser> | undefined;

afterAll(async () => {
  await (await shared)?.close();
  shared = undefined;
});

export type Visit = Awaited<ReturnType<typeof visit>>;

/** Opens the URL in a new context of the run's browser, without cookies or storage. */
export async function visit(url: string, options: BrowserContextOptions = {}) {
  shared ??= chromium.connect(inject('browserUrl'));
  const context = await (await shared).newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  /** Script errors, blocked content and failed loads. */
  const complaints: string[] = [];
  /** Requested addresses outside this machine. */
  const outside: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('request', (request) => {
    if (new URL(request.url()).hostname !== '127.0.0.1') outside.push(request.url());
  });
  await page.goto(url);
  return { page, context, complaints, outside };
}

export const PHONE = { width: 360, height: 740 };

/** Waits until the view of the current address is shown. */
export async function settled(page: Page): Promise<void> {
  // The page handles a hash change one turn of its event loop after the test.
  await page.evaluate('new Promise((resolve) => setTimeout(resolve, 30))');
  await page.locator('main:not([aria-busy])').waitFor();
}

/** Navigates to another view, as a link does. */
export async function goTo(page: Page, hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  await settled(page);
}
