import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll } from 'vitest';
import { CHROMIUM } from './global-chromium.ts';

/** Longer than anything takes on a slow machine, and shorter than a test. */
const WAIT_MS = 20_000;
const isRoot = process.getuid?.() === 0;

function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      // Chromium's own sandbox does not work for root, and it is our own page that it shows.
      ...(isRoot ? ['--no-sandbox'] : []),
      '--disable-dev-shm-usage',
      // Nothing but this machine: a page that asks the outside world for something shall fail.
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
      '--disable-background-networking',
    ],
  });
}

let shared: Promise<Browser> | undefined;

afterAll(async () => {
  await (await shared)?.close();
  shared = undefined;
});

export interface Visit {
  page: Page;
  context: BrowserContext;
  /** What the page complained about: script errors, refused content, failed loads. */
  complaints: string[];
  /** Addresses that are not on this machine. */
  outside: string[];
}

/** A window of its own, with nothing remembered. One browser serves a test file. */
export async function visit(url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  shared ??= launchBrowser();
  const context = await (await shared).newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
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
