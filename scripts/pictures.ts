import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Browser, chromium, type Page } from 'playwright-core';
import { runStartApp } from '../src/app/start.ts';
import { parseConfig } from '../src/config/index.ts';
import { openEmbedded } from '../src/cursor/embedded/index.ts';
import type { Overview, Quarantine, Runs } from '../src/http/api-types.ts';
import { findOrInstall } from '../test/support/machine.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../test/support/odd-service/service.ts';
import { silentLog } from '../test/support/silent-log.ts';
import { withPalette } from './palette-png.ts';

/**
 * `npm run pictures [-- STATE… | STATE/VIEW…]`: the pictures of docs/images. Each state is one of the program itself: `tributary start` on an embedded
 * Postgres and on the sandbox, whose traits and faults bring it about.
 */

const FOLDER = new URL('../docs/images/', import.meta.url).pathname;
const WIDTHS = { 1280: 800 };
const TOKEN = 'a-token-for-the-pictures';
const DAY_MS = 86_400_000;
const PATIENCE_MS = 120_000;
const day = (ago: number): string => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10);

interface Room {
  sandbox: Sandbox;
  /** The answer of the API, to GET or, with a body, to POST. */
  ask<T>(path: string, body?: object): Promise<T>;
  /** Stops Postgres under the running program. */
  stopPostgres(): Promise<void>;
}

interface State {
  sandbox: SandboxOptions;
  since: string;
  /** 4 requests a second, as a business plan grants, unless it takes too long. */
  perSecond?: number;
  /** Brings it about. */
  reach(room: Room): Promise<void>;
  /** Those of all views, and what only this state shows. */
  views?(room: Room): Promise<Record<string, string>>;
}

const ROWS = { clicks: 9000, leads: 900, sales: 400 };

const STATES: Readonly<Record<string, State>> = {
  first: {
    sandbox: { rows: ROWS, days: 120 },
    since: day(90),
    async reach({ sandbox, ask }) {
      // The service takes its time, so nothing has been read yet.
      sandbox.service.faults.add({ delayMs: 600_000, times: 1000 });
      await until(async () => (await ask<Overview>('/api/overview')).activities.length > 0);
    },
  },
  running: {
    sandbox: { rows: { clicks: 40_000, leads: 2000, sales: 800 }, days: 60 },
    since: day(20),
    async reach(room) {
      await synced(room);
      room.sandbox.service.faults.add({ delayMs: 2500, times: 100_000 });
      const streams = ['clicks', 'leads'];
      await room.ask('/api/backfills', { streams, from: day(60), to: day(20), pricedRows: { 'main/clicks': 26_000 } });
      await until(async () => (await room.ask<Overview>('/api/overview')).activities.some(({ rows }) => rows));
    },
  },
  healthy: {
    sandbox: { rows: ROWS, days: 120 },
    since: day(60),
    async reach(room) {
      await synced(room);
      await room.ask('/api/backfills', { streams: ['clicks'], from: day(110), to: day(80) });
      const { backfills } = await room.ask<{ backfills: Array<{ id: string }> }>('/api/backfills');
      await until(
        async () => (await room.ask<{ state: string }>(`/api/backfills/${backfills[0]?.id}`)).state === 'done',
      );
      for (const stream of ['clicks', 'leads', 'sales'] as const) room.sandbox.service.arrive(stream, 12);
      await room.ask('/api/sync', { wait: 60 });
    },
  },
  degraded: {
    sandbox: {
      ...{ rows: ROWS, days: 120, requestsPerSecond: null },
      traits: { ignorePage: true, ties: 1500, unknownFields: true, contradict: 0.05 },
    },
    since: day(60),
    perSecond: 40,
    async reach(room) {
      room.sandbox.service.add('leads', { event: 'lead', eventId: 'timeless', timestamp: 'once', link: { id: 'l' } });
      await until(async () => {
        const { streams } = await room.ask<Overview>('/api/overview');
        const isRead = streams.every(({ completeThrough }) => completeThrough !== null);
        return isRead && streams.some((one) => one.uncertifiedWindows > 0) && streams.some((one) => one.setAside > 0);
      });
      room.sandbox.service.traits = { forbidden: 'plan' };
      await room.ask('/api/sync', { wait: 60 });
      await until(async () => (await room.ask<Overview>('/api/overview')).troubles.length > 0);
    },
    views: async ({ ask }) => {
      const { records } = await ask<Quarantine>('/api/quarantine');
      return { record: `#/quarantine/${records[0]?.id}`, unknown: '#/stream/main/nope' };
    },
  },
};

const viewsOf = async ({ ask }: Room): Promise<Record<string, string>> => {
  const { runs } = await ask<Runs>('/api/runs');
  const told = runs.find(({ kind, read }) => kind === 'backfill' && read > 0) ?? runs.findLast(({ read }) => read > 0);
  return {
    streams: '#/',
    stream: '#/stream/main/clicks',
    backfills: '#/backfills',
    runs: '#/runs',
    run: `#/run/${(told ?? runs[0])?.id}`,
    budget: '#/budget',
    quarantine: '#/quarantine',
    schema: '#/schema',
    links: '#/links',
    audit: '#/audit',
    queues: 'queues',
  };
};

async function main(wanted: readonly string[]): Promise<void> {
  const executablePath = findOrInstall({
    programs: ['chromium', 'chromium-browser', 'google-chrome'],
    packages: ['chromium', 'fonts-dejavu-core'],
    elsewhere: 'elsewhere a Chromium or Chrome on the PATH will do',
  });
  if (executablePath === undefined) throw new Error('there is no browser to take pictures with');
  await mkdir(FOLDER, { recursive: true });
  const args = ['--disable-dev-shm-usage', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])];
  for (const [name, state] of Object.entries(STATES)) {
    const views = wanted.filter((one) => one.split('/')[0] === name).map((one) => one.split('/')[1]);
    if (wanted.length > 0 && views.length === 0) continue;
    await withRoom(state, async (room, url) => {
      const browser = await chromium.launch({ executablePath, args });
      await take(browser, { name, state, room, url, views }).finally(() => browser.close());
    });
  }
}

async function withRoom(state: State, work: (room: Room, url: string) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'tributary-pictures-'));
  const postgres = await openEmbedded({ dir, log: silentLog, command: 'pictures', settings: { fsync: 'off' } });
  const sandbox = await startSandbox(state.sandbox);
  const stop = new AbortController();
  // With a lag target, as `init` writes it.
  const streams = Object.fromEntries(
    ['clicks', 'leads', 'sales'].map((name) => [name, { every: '20s', maxLag: '1h' }]),
  );
  const main = {
    baseUrl: sandbox.baseUrl,
    apiKey: sandbox.apiKey,
    requestsPerSecond: state.perSecond ?? 4,
    plan: 'enterprise',
    since: state.since,
    streams,
  };
  const http = { port: 0, token: TOKEN };
  const { config } = parseConfig(
    JSON.stringify({ sources: { main }, state: { url: postgres.url }, http }),
    'pictures',
    {},
  );
  let ended: Promise<void> = Promise.resolve();
  let isStopped = false;
  const stopPostgres = async (): Promise<void> => {
    if (!isStopped) await postgres.close();
    isStopped = true;
  };
  try {
    const url = await new Promise<string>((listening, failed) => {
      ended = runStartApp({ config, log: silentLog, signal: stop.signal, onListening: listening });
      ended.catch(failed);
    });
    const ask: Room['ask'] = async (path, body) => {
      const response = await fetch(url + path, {
        method: body ? 'POST' : 'GET',
        headers: { authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      });
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
      return (await response.json()) as never;
    };
    const room = { sandbox, ask, stopPostgres };
    await state.reach(room);
    await work(room, url);
  } finally {
    stop.abort();
    await sandbox.close();
    await ended.catch(() => {}); // Recovery: the pictures are taken; without Postgres it cannot end well.
    await stopPostgres();
    await rm(dir, { recursive: true, force: true });
  }
}

interface Sitting {
  name: string;
  state: State;
  room: Room;
  url: string;
  /** Only these, where some are named. */
  views: readonly (string | undefined)[];
}

async function take(browser: Browser, { name, state, room, url, views: only }: Sitting): Promise<void> {
  const views = { ...(await viewsOf(room)), ...(await state.views?.(room)) };
  for (const [width, height] of Object.entries(WIDTHS)) {
    const context = await browser.newContext({ viewport: { width: Number(width), height }, colorScheme: 'light' });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    await page.goto(`${url}/#token=${TOKEN}`);
    for (const [view, to] of Object.entries(views)) {
      if (only.length > 0 && !only.includes(undefined) && !only.includes(view)) continue;
      await page.goto(`${url}/${to}`);
      await save(page, `${view}-${name}-${width}`);
    }
    await context.close();
  }
  if (name !== 'degraded') return;
  const pages = await Promise.all(
    Object.entries(WIDTHS).map(async ([width, height]) => {
      const context = await browser.newContext({ viewport: { width: Number(width), height }, colorScheme: 'light' });
      const page = await context.newPage();
      await page.goto(`${url}/#token=${TOKEN}`);
      await page.locator('main:not([aria-busy])').waitFor();
      return { page, width };
    }),
  );
  await room.stopPostgres();
  for (const { page, width } of pages) {
    await page.locator('#live[data-state="away"]').waitFor({ timeout: PATIENCE_MS });
    await save(page, `streams-away-${width}`);
    await page.close();
  }
}

async function save(page: Page, name: string): Promise<void> {
  if (page.url().includes('#')) await page.locator('main:not([aria-busy])').waitFor();
  // Bull Board draws itself later.
  else await page.getByText('Loading').waitFor({ state: 'hidden' });
  await sleep(1000);
  // A long list goes on in the same way.
  const { width, height } = { ...page.viewportSize(), ...(await page.evaluate<{ height: number }>(HEIGHT)) };
  const clip = { x: 0, y: 0, width: width ?? 0, height: Math.min(height, MOST_HEIGHT) };
  const png = await page.screenshot({ fullPage: true, clip });
  await writeFile(join(FOLDER, `${name}.png`), await withPalette(await page.context().newPage(), png));
  process.stdout.write(`${name}\n`);
}

const MOST_HEIGHT = 1700;
const HEIGHT = '({ height: document.documentElement.scrollHeight })';

async function synced({ ask }: Room): Promise<void> {
  await until(async () => {
    const { streams } = await ask<Overview>('/api/overview');
    return streams.every(({ lastRun }) => lastRun !== null && lastRun.state !== 'running');
  });
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 300_000;
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error('the state was not reached within five minutes');
    await sleep(300);
  }
}

/** Those that the docs show, unless others are named. */
const SHOWN = ['healthy/streams', 'healthy/stream', 'degraded/streams'];
const wanted = process.argv.slice(2);
await main(wanted.length > 0 ? wanted : SHOWN);
