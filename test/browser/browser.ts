import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, inject } from 'vitest';

/** Longer than anything takes on a slow machine, and shorter than a test. */
const WAIT_MS = 20_000;

/** Whether this machine has a browser; tests that need one are skipped where it has none. */
export const hasBrowser = inject('browserUrl') !== '';

let shared: Promise<Browser> | undefined;

afterAll(async () => {
  await (await shared)?.close();
  shared = undefined;
});

export type Visit = Awaited<ReturnType<typeof visit>>;

/** A window of its own, with nothing remembered, of the run's one browser. */
export async function visit(url: string, options: BrowserContextOptions = {}) {
  shared ??= chromium.connect(inject('browserUrl'));
  const context = await (await shared).newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  /** What the page complained about: script errors, refused content, failed loads. */
  const complaints: string[] = [];
  /** Addresses that are not on this machine. */
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

/** Until the view of the address is there. */
export async function settled(page: Page): Promise<void> {
  // The page hears of a new address a turn of its loop later than we.
  await page.evaluate('new Promise((resolve) => setTimeout(resolve, 30))');
  await page.locator('main:not([aria-busy])').waitFor();
}

/** To another view, as a link would. */
export async function goTo(page: Page, hash: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  await settled(page);
}
