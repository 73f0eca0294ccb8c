import { describe, expect, it } from 'vitest';
import { forThisFile } from '../support/for-this-file.ts';
import { axeFaults } from './axe.ts';
import { goTo, hasBrowser, PHONE, settled, visit } from './browser.ts';
import { VIEWS } from './page-data.ts';
import { servePage } from './page-server.ts';

/** The page alone: canned answers, a real browser. control-room.test.ts tests it with a real worker. */
/** Dark mode has the same elements in other colours; a phone has the same colours in another layout. */
const LOOKS = [
  { how: 'in the light', options: { colorScheme: 'light' }, checks: 'all', widths: [] },
  { how: 'in the dark', options: { colorScheme: 'dark' }, checks: 'contrast', widths: [] },
  {
    how: 'on a phone',
    options: { viewport: PHONE },
    checks: 'all but contrast',
    widths: [620, 800, 1000, PHONE.width],
  },
] as const;

const server = await forThisFile(servePage({ sources: 2, days: 320, runDays: 23 }));

describe.skipIf(!hasBrowser).each(LOOKS)('the page $how', ({ options, checks, widths }) => {
  it('renders every view with names for screen readers, contrast, no sideways scrolling and no complaint', async () => {
    const seen = await visit(server.baseUrl, options);
    for (const [name, hash] of Object.entries(VIEWS)) {
      await goTo(seen.page, hash);
      expect({ name, faults: await axeFaults(seen.page, checks) }).toEqual({ name, faults: [] });
      for (const width of widths) {
        await seen.page.setViewportSize({ width, height: 740 });
        const tooWide = await seen.page.evaluate('document.documentElement.scrollWidth - innerWidth');
        expect({ name, width, tooWide }).toEqual({ name, width, tooWide: 0 });
      }
    }
    expect({ complaints: seen.complaints, outside: seen.outside }).toEqual({ complaints: [], outside: [] });
    await seen.context.close();
    // Loads dozens of views: slow on a busy machine.
  }, 150_000);
});

describe.skipIf(!hasBrowser)('the page', () => {
  it('is navigable by keyboard alone: to a day, its windows, and a backfill of it', async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/`);
    await settled(page);
    const focused = () => page.evaluate('document.activeElement?.textContent?.trim() ?? ""');
    const tabTo = async (text: string): Promise<void> => {
      for (let left = 60; (await focused()) !== text; left--) {
        if (left === 0) throw new Error(`no way to "${text}" by the tab key; it stands at "${await focused()}"`);
        await page.keyboard.press('Tab');
      }
    };
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    await tabTo('clicks');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/stream\/main\/clicks/);
    await settled(page);
    await tabTo('Month');
    await page.keyboard.press('Enter');
    await page.waitForURL(/zoom=month/);
    await settled(page);
    const today = new Date().getUTCDate();
    await tabTo(String(today));
    // A week back, where the month has one: arrow keys move within the grid, and one Tab leaves it.
    await page.keyboard.press(today > 7 ? 'ArrowUp' : 'ArrowLeft');
    const day = await page.evaluate('document.activeElement?.getAttribute("data-key") ?? ""');
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`day=${day}`));
    await page.locator('#windows-title').waitFor();
    await settled(page);
    expect(await page.evaluate('document.activeElement?.getAttribute("data-key")')).toBe(day);
    await tabTo('Backfill this day');
    await page.keyboard.press('Enter');
    await page.waitForURL(/#\/backfills/);
    expect(await page.inputValue('#from')).toBe(day);
    await tabTo('Show the estimate');
    await page.keyboard.press('Enter');
    await tabTo('Start the backfill');
    await context.close();
  });

  it('has shortcuts and a list of them, and finds a stream, a run and a record by name or id', async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/`);
    await settled(page);
    for (const [key, at] of Object.entries({
      b: /#\/backfills$/,
      r: /#\/runs$/,
      d: /#\/links$/,
      s: /#\/budget$/,
      o: /#\/$/,
    })) {
      await page.keyboard.press('g');
      await page.keyboard.press(key);
      await page.waitForURL(at);
      await settled(page);
    }
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('go to Backfills').waitFor();
    await page.keyboard.press('Escape');
    for (const [text, at] of Object.entries({
      'shop/leads': /#\/stream\/shop\/leads$/,
      '17': /#\/quarantine\/17$/,
      'run-5-of-a-day': /#\/run\/run-5-of-a-day$/,
    })) {
      await page.keyboard.press('/');
      await page.keyboard.type(text);
      await page.keyboard.press('Enter');
      await page.waitForURL(at);
      await settled(page);
    }
    // Two sources have this stream.
    await page.keyboard.press('/');
    await page.keyboard.type('clicks');
    await page.keyboard.press('Enter');
    await page.getByText('There is no stream, run, record or link “clicks”.').waitFor();
    await context.close();
  });

  it('finds a link by its id or a part of its name, on a phone too', async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/`, { viewport: PHONE });
    await settled(page);
    for (const text of ['link_08fK2', 'com/launch']) {
      await page.getByRole('combobox', { name: /^Find/ }).click();
      await page.keyboard.type(text);
      await page.keyboard.press('Enter');
      await page.waitForURL(/#\/links\?q=/);
      await settled(page);
      expect(await page.locator('tbody tr .ranked b').allTextContents()).toEqual(['go.example.com/launch']);
    }
    await page.getByRole('link', { name: '‹ Top links' }).click();
    await page.getByRole('heading', { name: 'Top links' }).waitFor();
    await context.close();
  });

  it('charts rows by event time and by arrival, with tooltips, zoom, a choice of times, and first syncs apart', async () => {
    const { page, context, complaints } = await visit(`${server.baseUrl}/#/`);
    await settled(page);
    const chart = page.locator('time-chart');
    await chart.scrollIntoViewIfNeeded();
    const box = (await chart.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    const middle = box.y + box.height / 2;
    await page.mouse.move(box.x + box.width / 2, middle);
    const tip = await page.locator('.chart-tip').textContent();
    expect(tip).toMatch(/^\d{4}-\d\d-\d\dclicks [\d,]+leads [\d,]+sales [\d,]+$/);
    const whole = page.getByRole('button', { name: 'Whole range' });
    expect(await whole.isVisible()).toBe(false);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.7, middle, { steps: 4 });
    await page.mouse.up();
    await whole.waitFor();
    // Live updates keep the zoom.
    const drawn = page.waitForResponse((response) => response.url().includes('/api/rows'));
    server.send('changed', { topics: ['coverage'] });
    await drawn;
    await settled(page);
    expect(await whole.isVisible()).toBe(true);
    await whole.click();
    expect(await whole.isVisible()).toBe(false);
    await page.getByRole('link', { name: 'Arrival' }).click();
    await page.getByText('First syncs added 41,603 more rows, which the chart omits.').waitFor();
    const asked = page.waitForRequest((request) => /api\/rows\?.*per=hour/.test(request.url()));
    await page.getByRole('link', { name: '48 hours' }).click();
    await asked;
    expect(complaints).toEqual([]);
    await context.close();
  });

  it("shows all times in UTC or in the viewer's time zone, by a switch that is remembered", async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/run/run-5`, { timezoneId: 'Asia/Tokyo' });
    await settled(page);
    const sent = page.getByRole('table', { name: 'Requests' }).locator('time').first();
    const iso = (await sent.getAttribute('datetime')) ?? '';
    const shown = (ms: number): string => new Date(Date.parse(iso) + ms).toISOString().slice(0, 19).replace('T', ' ');
    expect(await sent.textContent()).toBe(shown(0));
    await page.getByRole('button', { name: 'Times are UTC; switch' }).click();
    expect(await sent.textContent()).toBe(shown(9 * 3_600_000));
    await page.reload();
    await settled(page);
    expect(await sent.textContent()).toBe(shown(9 * 3_600_000));
    await context.close();
  });

  it('has five entries in its navigation, on one line of a phone, and links to the other views', async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/budget`, { viewport: { width: 390, height: 740 } });
    await settled(page);
    const entries = page.getByRole('navigation', { name: 'Views' }).getByRole('link');
    expect((await entries.allTextContents()).map((text) => text.trim().split(' ')[0])).toEqual([
      'Overview',
      'Backfills',
      'Runs',
      'Data',
      'Settings',
    ]);
    const tops = await entries.evaluateAll((all) => all.map((each) => Math.round(each.getBoundingClientRect().top)));
    expect(new Set(tops).size).toBe(1);
    const parts = page.getByRole('navigation', { name: 'Parts' });
    expect(await parts.getByRole('link').allTextContents()).toEqual(['Budget', 'Audit', 'Queues']);
    expect(await parts.getByRole('link', { name: 'Queues' }).getAttribute('href')).toBe('queues');
    await context.close();
  });

  it('colours each day by its number of rows, and leaves days without a known number blank', async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/stream/main/clicks?zoom=year`);
    await settled(page);
    const cells = page.getByRole('gridcell');
    const seen = await cells.evaluateAll((all) =>
      all.map((cell) => ({
        rows: Number(/([\d,]+) rows?$/.exec(cell.getAttribute('aria-label') ?? '')?.[1]?.replace(',', '')),
        share: Number(cell.style.getPropertyValue('--share')),
      })),
    );
    const known = seen.filter(({ rows }) => !Number.isNaN(rows)).sort((a, b) => a.rows - b.rows);
    expect(known.length).toBeGreaterThan(0.8 * seen.length);
    expect(known.length).toBeLessThan(seen.length);
    expect(known.map(({ share }) => share)).toEqual(known.map(({ share }) => share).sort((a, b) => a - b));
    expect(known.at(-1)?.share).toBe(1);
    expect(known[0]?.share).toBeLessThan(0.1);
    await page.getByRole('link', { name: 'Month', exact: true }).click();
    await page.getByRole('grid', { name: /^Days of [A-Z]/ }).waitFor();
    expect(await page.locator('.month [data-rows]').count()).toBeGreaterThan(0);
    await context.close();
  });

  it('shows the price of each stream as it arrives, and keeps the arrived ones when stopped', async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/backfills?source=main`);
    await settled(page);
    const isSlow = { leads: true };
    await page.route('**/api/backfills/price', async (route) => {
      const [stream] = route.request().postDataJSON().streams;
      if (isSlow[stream as 'leads']) await new Promise((resolve) => setTimeout(resolve, 60_000));
      await route.continue().catch(() => {}); // The request was cancelled.
    });
    const cost = page.getByRole('table', { name: 'What it will cost' });
    await page.getByRole('button', { name: 'Show the estimate' }).click();
    await page.getByText('Estimating: 2 of 3 streams').waitFor();
    const rows = async () => (await cost.getByRole('row').allTextContents()).slice(1);
    expect(await rows()).toEqual([
      expect.stringContaining('48,000'),
      'main/leads–––',
      expect.stringContaining('16,000'),
    ]);
    await page.getByText('takes 56 s at 4 requests a second').waitFor();
    await page.getByRole('button', { name: 'Stop estimating' }).click();
    await page.getByText('Stopped: 2 of 3 streams estimated.').waitFor();
    expect(await page.getByRole('button', { name: 'Start the backfill' }).count()).toBe(0);
    // A changed selection removes the result.
    isSlow.leads = false;
    await page.getByRole('checkbox', { name: 'sales' }).uncheck();
    expect(await cost.count()).toBe(0);
    await page.getByRole('button', { name: 'Show the estimate' }).click();
    const asked = page.waitForRequest((request) => request.url().endsWith('/api/backfills'));
    await page.getByRole('button', { name: 'Start the backfill' }).click();
    expect((await asked).postDataJSON().pricedRows).toEqual({ 'main/clicks': 48_000, 'main/leads': 24_000 });
    await context.close();
  });

  it('disables a button immediately and until its request is done, even when live updates arrive', async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/`);
    await settled(page);
    let answer = (): void => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let asked = 0;
    await page.route('**/api/sync', async (route) => {
      asked++;
      await held;
      await route.fulfill({ status: 202, json: {} });
    });
    const button = page.getByRole('group', { name: 'Actions for main' }).getByRole('button', { name: 'Sync now' });
    await button.focus();
    await page.keyboard.press('Enter');
    const isOff = () => button.evaluate((element: { disabled?: boolean }) => element.disabled === true);
    // Before the server answers: both are shown as soon as the click returns.
    expect({ off: await isOff(), status: await page.locator('#said').textContent() }).toEqual({
      off: true,
      status: 'Working…',
    });
    const drawn = page.waitForResponse((response) => response.url().includes('/api/coverage'));
    server.send('changed', { topics: ['coverage'] });
    await drawn;
    await settled(page);
    expect(await isOff()).toBe(true);
    answer();
    await page.getByText('The streams of main are due now').waitFor();
    expect({ off: await isOff(), asked }).toEqual({ off: false, asked: 1 });
    expect(await page.evaluate('document.activeElement?.textContent')).toBe('Sync now');
    await context.close();
  });

  it('warns of doubtful filters, on the stream and before a backfill', async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/stream/main/leads`);
    await settled(page);
    const doubts = page.getByRole('list', { name: 'Doubtful filters' });
    expect(await doubts.getByRole('listitem').allTextContents()).toEqual([
      expect.stringContaining('main/leads: query is not checked'),
    ]);
    await page.goto(`${server.baseUrl}/#/backfills?source=main&stream=leads`);
    await page.getByRole('button', { name: 'Show the estimate' }).click();
    await doubts.getByText('main/leads: query is not checked').waitFor();
    await page.goto(`${server.baseUrl}/#/stream/main/clicks`);
    await settled(page);
    expect(await doubts.count()).toBe(0);
    await context.close();
  });

  it('shows differences between a sink and the service, and requests a repair of the same days', async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/stream/main/clicks`);
    await settled(page);
    const panel = page.getByRole('region', { name: 'Verify or export' });
    const cells = panel.getByRole('table', { name: 'What differs' }).getByRole('cell');
    expect(await cells.allTextContents()).toEqual(['warehouse', '3', '0', '1', '2026-11-03']);
    const asked = page.waitForRequest((request) => request.method() === 'POST');
    await panel.getByRole('button', { name: 'Repair' }).press('Enter');
    expect((await asked).postDataJSON()).toEqual({
      source: 'main',
      streams: ['clicks'],
      from: '2026-11-01T00:00:00.000Z',
      to: '2026-11-08T00:00:00.000Z',
      repair: true,
    });
    await page.getByRole('status').getByText('main/clicks is being repaired.').waitFor();
    await context.close();
  });

  it('shows content from the service as text, even if it looks like markup', async () => {
    const { page, context, complaints } = await visit(`${server.baseUrl}/#/quarantine/17`);
    await page.locator('pre', { hasText: '<img src=x onerror=alert(1)>' }).waitFor();
    expect(await page.locator('main img').count()).toBe(0);
    expect(complaints).toEqual([]);
    await context.close();
  });

  it("shows times in UTC, and the viewer's time in a tooltip", async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/quarantine/17`, { timezoneId: 'Asia/Tokyo' });
    const time = page.locator('dd time').first();
    const iso = (await time.getAttribute('datetime')) ?? '';
    expect(await time.textContent()).toBe(iso.slice(0, 16).replace('T', ' '));
    const there = new Date(Date.parse(iso) + 9 * 3_600_000).toISOString();
    expect(await time.getAttribute('title')).toContain(`UTC · here`);
    expect(await time.getAttribute('title')).toContain(
      `${Number(there.slice(11, 13)) % 12 || 12}:${there.slice(14, 16)}`,
    );
    await context.close();
  });

  it('keeps input and focus when live updates arrive', async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/backfills`);
    await settled(page);
    await page.fill('#from', '2026-01-02');
    await page.getByRole('table').getByRole('button', { name: 'Pause the backfill of main/clicks' }).focus();
    const asked = page.waitForResponse((response) => response.url().endsWith('/api/backfills'));
    server.send('changed', { topics: ['backfills'] });
    await asked;
    await settled(page);
    expect(await page.inputValue('#from')).toBe('2026-01-02');
    expect(await page.evaluate('document.activeElement?.textContent')).toBe('Pause');
    await context.close();
  });

  it('navigates to the requested view while live updates arrive', async () => {
    const { page, context } = await visit(`${server.baseUrl}/#/backfills`);
    await settled(page);
    const updates = setInterval(() => server.send('changed', { topics: ['backfills', 'runs'] }), 100);
    // The navigation takes longer than the page's debounce of live updates.
    await page.route('**/api/runs?*', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      await route.continue();
    });
    await page.evaluate('location.hash = "#/runs"');
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    clearInterval(updates);
    await context.close();
  });

  it('remembers a choice of light or dark', async () => {
    const { page, context } = await visit(server.baseUrl, { colorScheme: 'light' });
    const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await ground();
    await page.click('#theme');
    await page.click('#theme');
    const dark = await ground();
    expect(dark).not.toBe(light);
    await page.reload();
    expect(await ground()).toBe(dark);
    expect(await page.textContent('#theme')).toBe('Theme: dark');
    await context.close();
  });

  it('reports that the server is down, keeps its data, and recovers when the server is back', async () => {
    const own = await servePage({ sources: 1, days: 30, runDays: 7 });
    const { page, context } = await visit(own.baseUrl);
    await settled(page);
    await own.close();
    const notice = page.locator('#notices', { hasText: 'The server does not answer' });
    await notice.waitFor();
    expect(await page.locator('#live').textContent()).toBe('Waiting');
    expect(await page.locator('main table').count()).toBeGreaterThan(0);
    expect(await axeFaults(page)).toEqual([]);
    const back = await servePage({ sources: 1, days: 30, runDays: 7 }, { port: own.port });
    await notice.waitFor({ state: 'detached' });
    expect(await page.locator('#live').textContent()).toBe('Live');
    await context.close();
    await back.close();
  });
});
