import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../support/odd-service/service.ts';
import { hasRedis } from '../support/redis.ts';
import { axeFaults } from './axe.ts';
import { goTo, hasBrowser, type Visit } from './browser.ts';
import { BEHIND_DAYS, type OperatorScene, openOperatorScene, signIn, TOKEN } from './operator-scene.ts';

/** Signs in with the token, resumes a parked stream, signs out. control-room-work.test.ts has the rest. */

describe.skipIf(!hasBrowser || !hasRedis)('the control room', () => {
  let scene: OperatorScene;
  let sandbox: Sandbox;
  let seen: Visit;
  beforeAll(async () => {
    scene = await openOperatorScene({ isRefused: true });
    ({ sandbox, seen } = scene);
  });
  afterAll(() => scene.close());

  it('shows nothing without the token, and everything with it', async () => {
    const { page } = seen;
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await axeFaults(page)).toEqual([]);
    await page.getByLabel('Token').fill('guessed');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').filter({ hasText: 'token' }).waitFor();
    expect(await page.textContent('body')).not.toContain('main');
    expect((await page.context().cookies()).length).toBe(0);
    await signIn(seen);
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
    expect(JSON.stringify([cookie, await page.evaluate('({ ...localStorage })')])).not.toContain(TOKEN);
  });

  it('shows a parked stream, and its lag falling after it is resumed', async () => {
    const { page } = seen;
    await goTo(page, '#/');
    const row = page.getByRole('row').filter({ hasText: 'clicks' });
    await row.getByText('parked').waitFor();
    await row.getByText(`${BEHIND_DAYS} days`).waitFor();
    await row.getByText('late').waitFor();
    await page.getByRole('heading', { name: /^Action needed/ }).waitFor();
    sandbox.service.traits = {};
    await goTo(page, '#/stream/main/clicks');
    await page.getByRole('button', { name: 'Sync now' }).click();
    await page.getByText('main/clicks is due now').waitFor();
    await goTo(page, '#/');
    // Without a reload. The settle time remains as lag.
    await row.getByText(/^1[01] min$/).waitFor();
    await page.getByRole('heading', { name: 'Everything is on time' }).waitFor();
    expect(await page.locator('main .badge').count()).toBe(0);
  });

  it('shows nothing after signing out', async () => {
    const { page } = seen;
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.textContent('body')).not.toContain('main');
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });
});
