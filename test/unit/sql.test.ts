import { expect, it } from 'vitest';
import { instantOf, raw, sql } from '../../src/cursor/database/sql.ts';

it('numbers the values of a statement across all of its parts', () => {
  const ofStream = sql`source = ${'main'} and stream = ${'sales'}`;
  const { text, values } = sql`update t set a = ${1} where ${ofStream} and b < ${2} or ${ofStream}`;
  expect(text).toBe('update t set a = $1 where source = $2 and stream = $3 and b < $4 or source = $5 and stream = $6');
  expect(values).toEqual([1, 'main', 'sales', 2, 'main', 'sales']);
});

it('inserts text into a statement only if it is marked as SQL', () => {
  const table = 'x; drop table y';
  expect(sql`select ${table}`).toMatchObject({ text: 'select $1', values: [table] });
  expect(sql`select ${raw('a')}, ${instantOf('at')} from t`).toMatchObject({
    text: 'select a, (extract(epoch from at) * 1000)::float8 from t',
    values: [],
  });
  expect(`${raw('a')} and ${sql`b = ${2}`}`).toBe('a and b = $1');
});
