import { text as textOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY_MS, startOfDay } from '../../src/model/window.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { hasRedis, type TestRedis } from '../support/redis.ts';
import { axeFaults } from './axe.ts';
import { goTo, hasBrowser, type Visit } from './browser.ts';
import { DAYS, type OperatorScene, openOperatorScene, signIn } from './operator-scene.ts';

/** What an operator does in the control room in a day. */

describe.skipIf(!hasBrowser || !hasRedis)('the work in the control room', () => {
  let scene: OperatorScene;
  let sandbox: Sandbox;
  let redis: TestRedis;
  let seen: Visit;
  beforeAll(async () => {
    scene = await openOperatorScene({ isRefused: false });
    ({ sandbox, redis, seen } = scene);
    await signIn(seen);
  });
  afterAll(() => scene.close());

  it('shows a quarantined record without personal data', async () => {
    const { page } = seen;
    const customer = { id: 'c', name: 'Ada Canary', email: 'canary@example.com' };
    sandbox.service.add('leads', {
      event: 'lead',
      eventId: 'timeless',
      timestamp: 'once',
      link: { id: 'l' },
      customer,
    });
    await page.locator('#quarantined', { hasText: '1' }).waitFor();
    await goTo(page, '#/quarantine');
    await page.getByRole('link', { name: /^Record/ }).click();
    await page.locator('pre', { hasText: '"timestamp": "once"' }).waitFor();
    const text = await page.textContent('body');
    expect([text?.includes('Canary'), text?.includes('canary@')]).toEqual([false, false]);
  });

  it('retries the record, which keeps its reason, and drops it by keyboard', async () => {
    const { page } = seen;
    const said = page.getByRole('status');
    // Otherwise the next reading quarantines it again.
    sandbox.service.remove('leads', 'timeless');
    await page.getByRole('button', { name: /^Retry record/ }).click();
    await said.getByText(/^Record \d+ stays: .*timestamp/).waitFor();
    await goTo(page, '#/quarantine');
    const drop = page.getByRole('row').getByRole('button', { name: /^Drop record/ });
    await drop.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    expect(await axeFaults(page)).toEqual([]);
    await page.keyboard.press('Escape');
    expect(await page.getByRole('dialog').count()).toBe(0);
    await drop.press('Enter');
    // The operator must type the record's number: neither a click nor another number drops it.
    const [agree, number] = [page.getByRole('button', { name: 'Drop the record' }), page.getByLabel(/^Type \d+ to/)];
    const asked = /\d+/.exec((await page.getByText(/^Type \d+ to confirm/).textContent()) ?? '')?.[0] ?? '';
    expect(await agree.isDisabled()).toBe(true);
    await number.fill(`${asked}1`);
    expect(await agree.isDisabled()).toBe(true);
    await number.press('Enter');
    expect(await page.getByRole('dialog').count()).toBe(1);
    await number.fill(asked);
    await number.press('Enter');
    await said.getByText(/^Record \d+ was dropped/).waitFor();
    await page.getByText('No records have been set aside.').waitFor();
    expect(await page.evaluate('document.activeElement?.id')).toBe('main');
    await page.locator('#quarantined').waitFor({ state: 'hidden' });
  });

  it('verifies a stream and downloads its days as a file', async () => {
    const { page } = seen;
    await goTo(page, '#/stream/main/clicks');
    const panel = page.getByRole('region', { name: 'Verify or export' });
    await panel.getByLabel('From (UTC)').fill(new Date(Date.now() - 5 * DAY_MS).toISOString().slice(0, 10));
    await panel.getByRole('button', { name: 'Verify' }).press('Enter');
    await panel.getByText(/\d+ events: no differences in warehouse/).waitFor();
    expect(await axeFaults(page)).toEqual([]);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      panel.getByRole('button', { name: 'Export' }).press('Enter'),
    ]);
    expect(file.suggestedFilename()).toMatch(/^main-clicks-.*\.csv$/);
    const [header = '', ...rows] = (await textOf(await file.createReadStream())).trim().split('\n');
    expect([header.startsWith('event,'), rows.length > 5]).toEqual([true, true]);
    await panel.getByLabel('To, exclusive (UTC)').fill('2020-01-01');
    await panel.getByRole('button', { name: 'Export' }).press('Enter');
    await page.getByRole('status').getByText('From must be before To.').waitFor();
  });

  it('prices a backfill, starts, pauses, resumes and cancels it', async () => {
    const { page } = seen;
    const today = startOfDay(Date.now());
    const date = (at: number): string => new Date(at).toISOString().slice(0, 10);
    await goTo(page, '#/backfills');
    await page.getByLabel('leads').uncheck();
    await page.getByLabel('sales').uncheck();
    await page.getByLabel('From (UTC)').fill(date(today - DAYS * DAY_MS));
    await page.getByLabel('To, exclusive (UTC)').fill(date(today - 7 * DAY_MS));
    await page.getByRole('button', { name: 'Show the estimate' }).click();
    await page.getByRole('table', { name: 'What it will cost' }).getByText('main/clicks').waitFor();
    // Delays requests for old days, so that the backfill can be paused while it runs.
    const isOld = ({ query }: { query: Readonly<Record<string, string>> }) =>
      Date.parse(query.start ?? '') < today - 6 * DAY_MS;
    sandbox.service.faults.add({ delayMs: 2000, times: 10_000, when: isOld });
    await page.getByRole('button', { name: 'Start the backfill' }).click();
    const row = page.getByRole('table', { name: 'Backfills' }).getByRole('row').filter({ hasText: 'main/clicks' });
    await row.getByRole('button', { name: /^Pause/ }).click();
    await row.getByText('paused', { exact: true }).waitFor();
    await row.getByRole('button', { name: /^Resume/ }).click();
    await row.getByText(/^(running|waiting)$/).waitFor();
    await row.getByRole('button', { name: /^Cancel/ }).click();
    await page.getByRole('dialog').waitFor();
    expect(await axeFaults(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await row.getByRole('button', { name: /^Cancel/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the backfill' }).click();
    await row.getByText('cancelled', { exact: true }).waitFor();
    expect(await row.getByRole('button').count()).toBe(0);
    sandbox.service.faults.clear();
  });

  it("renders every view without faults from a real worker's data", async () => {
    const { page } = seen;
    await goTo(page, '#/runs');
    const run = (await page.locator('a[href^="#/run/"]').first().getAttribute('href')) ?? '';
    for (const hash of ['#/', '#/stream/main/clicks', '#/runs', run, '#/budget', '#/schema', '#/links']) {
      await goTo(page, hash);
      expect({ hash, faults: await axeFaults(page), notices: await page.textContent('#notices') }).toEqual({
        hash,
        faults: [],
        notices: '',
      });
    }
    await goTo(page, '#/links');
    expect(await page.getByRole('table', { name: 'Top links' }).getByRole('row').count()).toBeGreaterThan(2);
    expect({ complaints: seen.complaints.filter((text) => !text.includes('401')), outside: seen.outside }).toEqual({
      complaints: [],
      outside: [],
    });
  });

  it('reports a missing stream, run, record or view', async () => {
    const { page } = seen;
    for (const [hash, title] of [
      ['#/stream/main/nope', 'There is no stream main/nope'],
      ['#/stream/nope/clicks', 'There is no stream nope/clicks'],
      ['#/run/nope', 'There is no run nope'],
      ['#/quarantine/999999', 'There is no record 999999'],
      ['#/quarantine/nope', 'There is no record nope'],
      ['#/nope', 'There is no view “nope”'],
    ] as const) {
      await goTo(page, hash);
      await page.getByRole('heading', { name: title }).waitFor();
      expect(await page.textContent('body')).not.toMatch(/Invalid|expected|openapi/);
    }
  });

  it('reports that Redis is down and recovers when Redis is back', async () => {
    const { page } = seen;
    await goTo(page, '#/');
    const notice = page.locator('#notices', { hasText: 'Not available: the queue' });
    await redis.stop();
    await notice.waitFor();
    expect(await page.getByRole('region', { name: 'Source main' }).isVisible()).toBe(true);
    await redis.start();
    await notice.waitFor({ state: 'detached' });
    sandbox.service.add('leads', { event: 'lead', eventId: 'timeless-2', timestamp: 'twice', link: { id: 'l' } });
    await page.locator('#quarantined', { hasText: '1' }).waitFor();
  });
});
