import { expect, it } from 'vitest';
import { connect } from '../../src/cursor/database/index.ts';
import { freshPlace } from '../support/cli.ts';
import { configText, emptyEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import type { Sandbox } from '../support/odd-service/service.ts';
import { freshDatabase } from '../support/postgres.ts';
import { smallSandbox } from '../support/sandbox.ts';

/** A name belongs to one service: another one under it is refused until a user adopts it. */

const rows = { clicks: 30, leads: 10, sales: 10 };
const [place, home, one, other] = await Promise.all([
  freshPlace(),
  forThisFile(emptyEngine()),
  smallSandbox({ rows, seed: 1 }),
  smallSandbox({ rows, seed: 2 }),
]);
const { db } = home;

async function run(sandbox: Sandbox, baseUrl: string, ...args: string[]) {
  const config = configText(home, { ...sandbox, baseUrl }, { name: 'main' });
  await place.config(config);
  return place.run([...args, '--config', 't.yaml']);
}
const rowsStored = async (): Promise<object[]> =>
  db.query({ text: 'select event_id, _missing_since from attribution.leads order by 1' });

it('every command refuses a key of another workspace, until it is adopted; a new key of the same one is accepted', async () => {
  const name = 'spaces';
  const own = await freshDatabase();
  const state = connect({ url: own.url, max: 1 });
  const range = ['--from', '20d', '--to', 'now'];
  const call = async (...args: string[]) => {
    await place.config(configText(own, one, { name }));
    return place.run([...args, '--config', 't.yaml']);
  };
  const known = async () =>
    (
      await state.query<{ workspace: string; key: string }>({
        text: 'select workspace, key_hash as key from tributary.sources',
      })
    )[0];
  expect((await call('sync')).code).toBe(0);
  const learned = await known();
  expect(learned).toEqual({ workspace: 'ws_sandbox', key: expect.stringMatching(/^[0-9a-f]{32}$/) });

  await state.query({ text: `update tributary.sources set key_hash = 'another key'` });
  expect((await call('verify', ...range)).code).toBe(0);
  expect(await known()).toEqual(learned);

  await state.query({ text: `update tributary.sources set workspace = 'ws_other', key_hash = 'another key'` });
  const rows = await state.query({ text: 'select count(*) from attribution.clicks' });
  for (const command of [['sync'], ['backfill', ...range, '--force'], ['verify', ...range]]) {
    const { code, text } = await call(...command);
    expect([command[0], code]).toEqual([command[0], 2]);
    expect(text.replace(/\s+/g, ' ')).toMatch(
      /source "spaces" has rows of workspace ws_other, and its key now shows workspace ws_sandbox: .*--adopt/,
    );
  }
  expect(await state.query({ text: 'select count(*) from attribution.clicks' })).toEqual(rows);
  expect((await call('sync', '--adopt')).code).toBe(0);
  expect(await known()).toEqual(learned);
  await state.close();
  await own.drop();
});

it('every command refuses another service under the same name, until it is adopted', async () => {
  // Mistyped at first, and corrected: nothing was read from there.
  expect((await run(one, `${one.baseUrl}/v9`, 'sync')).code).not.toBe(0);
  expect((await run(one, one.baseUrl, 'sync')).code).toBe(0);
  // The same address in another spelling.
  expect((await run(one, `${one.baseUrl.replace('http://', 'HTTP://')}/`, 'sync')).code).toBe(0);
  const before = await rowsStored();

  const range = ['--from', '2d', '--to', 'now'];
  for (const command of [['sync'], ['backfill', ...range], ['verify', ...range], ['worker'], ['doctor']]) {
    const { code, text } = await run(other, other.baseUrl, ...command);
    expect(code, text).toBe(2);
    expect(text.replace(/\s+/g, ' ')).toMatch(/source "main" was read from .* rows of two services would mix.*--adopt/);
  }
  expect(await rowsStored()).toEqual(before);

  expect((await run(other, other.baseUrl, 'sync', '--adopt')).code).toBe(0);
  expect((await run(other, other.baseUrl, 'sync')).code).toBe(0);
  expect(
    await db.query({ text: "select action, target, detail from tributary.audit where action = 'source.adopt'" }),
  ).toEqual([{ action: 'source.adopt', target: 'main', detail: { baseUrl: other.baseUrl } }]);
  expect((await run(one, one.baseUrl, 'sync')).code).toBe(2);
});
