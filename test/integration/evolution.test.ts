import { expect, it } from 'vitest';
import { evolvingFile, schema } from '../support/evolving.ts';
import { recordOf } from '../support/feed.ts';

/** Undeclared fields become columns: their types, their names, and how they widen. */

const evolving = evolvingFile();

it('gives a field a column of the observed type, and a comment with its origin', async () => {
  const { place, feed, column, typesOf, history } = evolving();
  const { send, source } = await feed('clicks');
  const seen = {
    tFlag: true,
    tCount: 9_007_199_254_740_993n,
    tRate: 0.1,
    tHuge: 2n ** 70n,
    tWhen: '2026-11-14T10:00:00.123456+02:00',
    tWord: 'a\tb\\.',
    tBag: { a: [1, null], big: 9_007_199_254_740_993n },
  };
  const { schemaChanges } = await send([recordOf('a', { click: seen }), recordOf('b')]);
  expect(await typesOf('clicks', '^click_t_')).toEqual({
    click_t_bag: 'jsonb',
    click_t_count: 'bigint',
    click_t_flag: 'boolean',
    click_t_huge: 'numeric',
    click_t_rate: 'numeric',
    click_t_when: 'timestamp with time zone',
    click_t_word: 'text',
  });
  const [stored] = await place.db.query<Record<string, unknown>>({
    text: `
      select click_t_flag as flag, click_t_count::text as count, click_t_rate::text as rate, click_t_huge::text as huge,
        to_char(click_t_when at time zone 'UTC', 'HH24:MI:SS.US') as at, click_t_word as word, click_t_bag::text as bag, _extra
      from ${schema}.clicks where _source = $1 and event_id = 'a'`,
    values: [source],
  });
  expect(stored).toEqual({
    flag: true,
    count: '9007199254740993',
    rate: '0.1',
    huge: String(2n ** 70n),
    at: '08:00:00.123456',
    word: 'a\tb\\.',
    bag: '{"a": [1, null], "big": 9007199254740993}',
    _extra: null,
  });
  expect(await column('clicks', source, 'click_t_word')).toEqual(['a\tb\\.', null]);
  expect(schemaChanges).toContain('click.tCount → click_t_count (integer)');
  expect(schemaChanges).toHaveLength(7);
  expect(await history('^click.tFlag$')).toEqual([
    { path: 'click.tFlag', name: 'click_t_flag', kind: 'boolean', was: null, source },
  ]);
  const [comment] = await place.db.query({
    text: `select col_description('${schema}.clicks'::regclass, attnum) as text from pg_attribute
      where attrelid = '${schema}.clicks'::regclass and attname = 'click_t_flag'`,
  });
  expect(comment).toMatchObject({ text: expect.stringMatching(/Not in the contract.*click\.tFlag/) });
  // Repeating it changes nothing.
  expect(await send([recordOf('a', { click: seen })])).toMatchObject({ new: 0, changed: 0, schemaChanges: [] });
});

it('widens a column in place, step by step, and keeps every value', async () => {
  const { feed, column, typesOf, history } = evolving();
  const { send, source } = await feed('leads');
  const steps: Array<[unknown, string, string]> = [
    [9_007_199_254_740_993n, 'bigint', '9007199254740993'],
    [-0.25, 'numeric', '-0.25'],
    [2n ** 80n, 'numeric', String(2n ** 80n)],
    ['two', 'text', 'two'],
    [true, 'text', 'true'],
    [{ deep: [9_007_199_254_740_993n] }, 'jsonb', '{"deep": [9007199254740993]}'],
    ['last', 'jsonb', 'last'],
  ];
  const expected: string[] = [];
  const changes: string[] = [];
  for (const [i, [value, type, shown]] of steps.entries()) {
    changes.push(...(await send([recordOf(`w${i}`, { wide: value })])).schemaChanges);
    expected.push(shown);
    expect(await typesOf('leads', '^wide')).toEqual({ wide: type });
    expect(await column('leads', source, 'wide')).toEqual(expected);
  }
  expect(changes).toEqual([
    'wide → wide (integer)',
    'wide → wide (integer → number)',
    'wide → wide (number → text)',
    'wide → wide (text → json)',
  ]);
  expect(await history('^wide$')).toMatchObject([
    { kind: 'integer', was: null },
    { kind: 'number', was: 'integer' },
    { kind: 'text', was: 'number' },
    { kind: 'json', was: 'text' },
  ]);
  expect(await column('leads', source, '_extra')).toEqual(steps.map(() => null));
});

it('widens booleans and times to text without loss, and to JSON too', async () => {
  const { feed, column } = evolving();
  const { send, source } = await feed('leads');
  const at = '2026-11-14T10:00:00.123456Z';
  await send([recordOf('a', { yes: true, when: at, yesBag: false, whenBag: at })]);
  await send([recordOf('b', { yes: 'maybe', when: 'never', yesBag: [], whenBag: { x: 1 } })]);
  expect(await column('leads', source, 'yes')).toEqual(['true', 'maybe']);
  expect(await column('leads', source, 'when')).toEqual([at, 'never']);
  expect(await column('leads', source, 'yes_bag')).toEqual(['false', '[]']);
  expect(await column('leads', source, 'when_bag')).toEqual([at, '{"x": 1}']);
});

it('never counts a row as changed for an undeclared joined field', async () => {
  const { place, feed, column, typesOf } = evolving();
  const { send, source } = await feed('sales');
  const joined = (n: number) => ({ link: { id: 'l', jRank: n }, customer: { id: 'c', jTier: `t${n}` } });
  await send([recordOf('a', joined(1)), recordOf('list', { link: ['odd', 1] })]);
  const versions = () =>
    place.db.query({ text: `select event_id, xmin::text from ${schema}.sales where _source = $1`, values: [source] });
  const before = await versions();
  const again = [recordOf('a', joined(2)), recordOf('list', { link: ['odd', 2] })];
  expect(await send(again)).toMatchObject({ new: 0, changed: 0, unchanged: 2 });
  expect(await versions()).toEqual(before);
  expect(await typesOf('sales', '^(link|link_j_rank|customer_j_tier)$')).toEqual({
    customer_j_tier: 'text',
    link_j_rank: 'bigint',
    link: 'jsonb',
  });
  expect(await send([recordOf('a', { ...joined(3), jOwn: true })])).toMatchObject({ changed: 1 });
  expect(await column('sales', source, 'link_j_rank')).toEqual(['3', null]);
});

it('creates one column for a field that several sources bring at once, and keeps the order', async () => {
  const { feed, column, typesOf } = evolving();
  const seen = [1, 2.5, 'three', true, 2n ** 66n, '2026-11-14T10:00:00Z'];
  const before = Object.keys(await typesOf('clicks', '.'));
  const feeds = await Promise.all(seen.map(() => feed('clicks')));
  await Promise.all(feeds.map(({ send }, i) => send([recordOf('a', { both: seen[i], [`own${i}`]: seen[i] })])));
  const after = Object.keys(await typesOf('clicks', '.'));
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after.filter((name) => name.startsWith('both'))).toEqual(['both']);
  const found = await Promise.all(feeds.map(({ source }) => column('clicks', source, 'both')));
  expect(found.map(([value]) => value)).toEqual([
    '1',
    '2.5',
    'three',
    'true',
    String(2n ** 66n),
    expect.stringMatching(/^2026-11-14T10:00:00/),
  ]);
});
