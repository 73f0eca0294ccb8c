import { expect, it } from 'vitest';
import { STREAMS } from '../../src/model/streams.ts';
import { bookkeeping, createMergeRule } from '../../src/sinks/files/merge-row.ts';
import { columnsOf } from '../../src/sinks/files/partition-file.ts';
import { createSanitizer, newestById, outdates, UTF8_TEXT } from '../../src/sinks/merge-rule.ts';
import { MINUTE, NOON, rowOf } from '../support/sink-harness.ts';

const stream = STREAMS.sales;
const sale = (minute: number, amount: number, id = 'a') =>
  rowOf(stream, id, NOON + minute * MINUTE, { sale_amount: amount });

it.each([
  ['newest first', [sale(2, 20), sale(1, 10)], 20],
  ['oldest first', [sale(1, 10), sale(2, 20)], 20],
  ['the newest between older ones', [sale(1, 10), sale(3, 30), sale(2, 20)], 30],
  ['equal times: the last', [sale(1, 10), sale(1, 11)], 11],
] as const)('of one event in a batch, the newest version counts: %s', (_name, rows, amount) => {
  const newest = newestById([sale(9, 1, 'other'), ...rows]);
  const at = stream.columns.findIndex(({ name }) => name === 'sale_amount');
  expect([...newest].map(([id, row]) => [id, row.values[at]])).toEqual([
    ['other', 1],
    ['a', amount],
  ]);
});

const cases = [
  // stored, read → which counts
  ['a newer version of the same run', { at: 2, runId: 'r' }, { at: 1, runId: 'r' }, false, true],
  ['an older version of the same run', { at: 1, runId: 'r' }, { at: 2, runId: 'r' }, false, false],
  ['the same time in the same run', { at: 1, runId: 'r' }, { at: 1, runId: 'r' }, false, false],
  ['a newer version of an earlier run', { at: 2, runId: 'q' }, { at: 1, runId: 'r' }, false, false],
  ['a missing version of the same run', { at: 2, runId: 'r' }, { at: 1, runId: 'r' }, true, false],
] as const;

it.each(cases)('stored: %s', (_name, stored, read, isMissing, counts) => {
  expect(outdates({ ...stored, isMissing }, read)).toBe(counts);
});

it.each(cases)('stored in a file: %s', (_name, stored, read, isMissing, counts) => {
  const columns = columnsOf(stream);
  const rule = createMergeRule(stream, columns);
  const rowIn = ({ at, runId }: { at: number; runId: string }, amount: number) => {
    const [values] = createSanitizer(stream, UTF8_TEXT).all([sale(at, amount)], ['main']);
    return [...(values ?? []), ...bookkeeping(NOON, runId)];
  };
  const row = rowIn(stored, 1);
  const known = rule.deciding.map((name) =>
    name === '_missing_since' && isMissing ? NOON : (row[columns.findIndex((column) => column.name === name)] ?? null),
  );
  expect(rule.differing(known, rowIn(read, 2)).includes('sale_amount')).toBe(!counts);
});
