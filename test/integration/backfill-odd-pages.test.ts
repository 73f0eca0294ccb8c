import { expect, it } from 'vitest';
import type { JsonObject } from '../../src/model/json.ts';
import { clicks, daysAgo, inWindow, monthOf } from '../support/backfills.ts';
import { backfill, configFor, openEngine, storedIds } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';

/** A backfill handles pages that cannot be read, as a sync does. */

const engine = await forThisFile(openEngine());

// Every broken page is retried with pauses, which takes minutes on any machine.
it('sets aside rows that break their page and reads the rest, as a sync does', {
  timeout: 600_000,
}, async () => {
  const sandbox = await monthOf(2500);
  sandbox.service.traits = { ...sandbox.service.traits, poison: 1 };
  const config = configFor(engine, sandbox);
  const window = { start: daysAgo(28), end: daysAgo(2) };
  const [outcome] = await backfill(config, { window }, clicks);
  expect(outcome?.fault?.describe()).toBeUndefined();
  const poisoned = sandbox.service.poisoned('clicks');
  expect(poisoned).toHaveLength(1);
  const expected = inWindow(sandbox, window).filter((id) => !poisoned.includes(id));
  expect(await storedIds(engine.db, config, 'clicks')).toEqual(expected);
});

it('asks for fewer rows when a page exceeds the size limit of an answer', async () => {
  const sandbox = await monthOf(1);
  const [like] = sandbox.service.events('clicks');
  const long = 'x'.repeat(160 * 1024);
  for (let i = 0; i < 450; i += 1) {
    const click = { ...(like?.click as JsonObject), id: `large-${i}` };
    const link = { ...(like?.link as JsonObject), comments: long };
    const timestamp = new Date(daysAgo(20) + i * 60_000).toISOString();
    sandbox.service.add('clicks', { ...like, click_id: `large-${i}`, timestamp, click, link });
  }
  const config = configFor(engine, sandbox);
  const window = { start: daysAgo(21), end: daysAgo(19) };
  const [outcome] = await backfill(config, { window }, clicks);
  expect(outcome?.fault?.describe()).toBeUndefined();
  expect(outcome?.report?.state).toBe('done');
  expect(await storedIds(engine.db, config, 'clicks')).toEqual(inWindow(sandbox, window));
});
