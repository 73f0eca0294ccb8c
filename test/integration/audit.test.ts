import { expect, it } from 'vitest';
import { listAudit, recordAudit } from '../../src/cursor/audit.ts';
import { openEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';

const engine = await forThisFile(openEngine());

const actions = async (page: Parameters<typeof listAudit>[1]): Promise<string[]> =>
  (await listAudit(engine.db, page)).map(({ action }) => action);

it('lists who did what, from where and when, newest first and in pages', async () => {
  for (const action of ['one', 'two', 'three']) await recordAudit(engine.db, { actor: 'ada', action });
  const [newest] = await listAudit(engine.db, { limit: 1 });
  expect(newest).toEqual({
    id: expect.stringMatching(/^\d+$/),
    at: expect.stringMatching(/^20.*Z$/),
    actor: 'ada',
    action: 'three',
    target: null,
    from: null,
    detail: {},
  });
  expect(await actions({ limit: 9, before: newest?.id })).toEqual(['two', 'one']);
  expect(await actions({ limit: 2 })).toEqual(['three', 'two']);
});

it('keeps the fields of a request, whatever characters they hold', async () => {
  const entry = { actor: 'a\0b', action: 'x', target: '\ud800', from: '::1', detail: { id: 'c\0d', n: [1, '\ud800'] } };
  await recordAudit(engine.db, entry);
  expect(await listAudit(engine.db, { limit: 1 })).toMatchObject([
    { actor: 'a\ufffdb', target: '\ufffd', from: '::1', detail: { id: 'c\ufffdd', n: [1, '\ufffd'] } },
  ]);
});

it('accepts any number as the position of a page', async () => {
  const everything = await actions({ limit: 99 });
  expect(await actions({ limit: 99, before: '99999999999999999999' })).toEqual(everything);
  expect(await actions({ limit: 99, before: '-99999999999999999999' })).toEqual([]);
});

it('is written in the same transaction as its change', async () => {
  const before = await actions({ limit: 99 });
  const change = engine.db.transaction(async (tx) => {
    await recordAudit(tx, { actor: 'ada', action: 'undone' });
    throw new Error('the change failed');
  });
  await expect(change).rejects.toThrow('the change failed');
  expect(await actions({ limit: 99 })).toEqual(before);
});
