import { expect, it } from 'vitest';
import { quarantine, type Rejected } from '../../src/cursor/quarantine.ts';
import { openEngine } from '../support/engine.ts';
import { forThisFile } from '../support/for-this-file.ts';
import { newSource } from '../support/sink-harness.ts';

const { db } = await forThisFile(openEngine());

interface Kept {
  reason: string;
  record: string;
  run_id: string;
  stream: string;
  first_at: Date;
  last_at: Date;
}

async function keep(
  source: string,
  rejected: readonly Rejected[],
  runId = '20261114T120000-00000001',
): Promise<Kept[]> {
  await quarantine(db, { source, stream: 'leads', runId }, rejected);
  return db.query<Kept & Record<string, unknown>>({
    text: 'select * from tributary.quarantine where source = $1 order by id',
    values: [source],
  });
}

const why = (record: unknown, reason = 'the record has no time'): Rejected => ({ record, reason });

it('keeps a record as received, with its reason', async () => {
  const record = { event: 'lead', eventId: 'e1', metadata: { n: 9007199254740993n, list: [1, null] } };
  const [kept, ...more] = await keep(newSource(), [why(record)]);
  expect(more).toEqual([]);
  expect(kept).toMatchObject({ stream: 'leads', reason: 'the record has no time', run_id: '20261114T120000-00000001' });
  expect(kept?.record).toBe('{"event":"lead","eventId":"e1","metadata":{"n":9007199254740993,"list":[1,null]}}');
});

it('keeps it once, however often it is read and however its link and customer change', async () => {
  const source = newSource();
  const read = (clicks: number) =>
    why({ eventId: 'e1', link: { id: 'l1', clicks }, customer: { id: 'c1', name: `made up ${clicks}` } });
  const [first] = await keep(source, [read(1), read(2)]);
  const [again, ...more] = await keep(source, [read(3)], '20261114T120000-00000002');
  expect(more).toEqual([]);
  expect(again?.first_at).toEqual(first?.first_at);
  expect(Number(again?.last_at)).toBeGreaterThan(Number(first?.last_at));
  expect(again?.run_id).toBe('20261114T120000-00000002');
  expect(again?.record).toContain('"clicks":3');
});

it('keeps different records apart: another event, another link, another source', async () => {
  const [source, other] = [newSource(), newSource()];
  await keep(other, [why({ eventId: 'e1' })]);
  const records = [{ eventId: 'e1' }, { eventId: 'e2' }, { link: { id: 'l1' } }, { link: { id: 'l2' } }];
  expect(
    await keep(
      source,
      records.map((record) => why(record)),
    ),
  ).toHaveLength(4);
});

it.each<[string, unknown]>([
  ['in its place', { link: { id: 'l', password: 'CANARY' } }],
  ['in a list of links', { link: [{ password: 'CANARY' }] }],
  ['in a link sent as text', { link: '{"id":"l","password":"CANARY"}' }],
  ['in a link sent as text in text', { link: '"{\\"password\\":\\"CANARY\\"}"' }],
  ['under another name', { linkPassword: 'CANARY', link: { Password: ['CANARY'], password_plain: { is: 'CANARY' } } }],
  ['in a record that is a list', [{ link: { password: 'CANARY' } }]],
  ['deeply nested', { data: { events: [{ link: { nested: { password: 'CANARY' } } }] } }],
])('never keeps the password of a link: %s', async (_where, record) => {
  const [kept] = await keep(newSource(), [why(record)]);
  expect(kept?.record).toBeDefined();
  expect(JSON.stringify(kept)).not.toContain('CANARY');
});

it('records that a link has no password, like the service', async () => {
  expect((await keep(newSource(), [why({ link: { password: null } })]))[0]?.record).toBe('{"link":{"password":null}}');
});

it.each<[string, unknown]>([
  ['NUL', { eventName: 'a\0b', 'key\0': '\0' }],
  ['lone surrogates', { eventName: '\ud800', list: ['\udc00'] }],
  ['text alone', 'not an object \0 \ud800'],
  ['null', null],
  ['nothing', undefined],
  ['a number', 12],
  ['an integer beyond 2^53', 9007199254740993n],
  ['a key called __proto__', JSON.parse('{"__proto__":{"admin":true}}')],
  ['a megabyte', { blob: 'x'.repeat(1_100_000) }],
])('accepts any value: %s', async (_what, record) => {
  const source = newSource();
  await keep(source, [why(record, 'a reason with \0 and \ud800')]);
  const kept = await keep(source, [why(record, 'a reason with \0 and \ud800')]);
  expect(kept.map(({ reason }) => reason)).toEqual(['a reason with \ufffd and \ufffd']);
});

it('keeps the top of an infinitely deep record', async () => {
  let record: unknown = 'bottom';
  for (let level = 0; level < 20_000; level++) record = { down: record };
  const [kept] = await keep(newSource(), [why({ eventId: 'deep', record })]);
  expect(kept?.record).toMatch(/^\{"eventId":"deep","record":\{"down":.*too deep/);
});

it('is rolled back with its batch', async () => {
  const source = newSource();
  const failing = db.transaction(async (tx) => {
    await quarantine(tx, { source, stream: 'leads', runId: '20261114T120000-00000001' }, [why({ eventId: 'e1' })]);
    throw new Error('the batch failed');
  });
  await expect(failing).rejects.toThrow('the batch failed');
  expect(await keep(source, [])).toEqual([]);
});
