import { isDeepStrictEqual } from 'node:util';
import type { Value } from '../../model/columns.ts';
import type { Instant } from '../../model/instant.ts';
import { isObject, parseJson } from '../../model/json.ts';
import { CUSTOMER_KNOWLEDGE, type Stream } from '../../model/streams.ts';
import { joinedKeys, outdates, ownColumns, POSTGRES_TEXT, SANITIZED } from '../merge-rule.ts';
import type { FileColumn } from '../parquet/format/index.ts';
import type { LakeRow } from './partition-file.ts';

/** The merge rule for rows in memory; `postgres/merge.ts` has it in SQL. */
export interface MergeRule {
  readonly key: string;
  /** The compared columns: `differing` takes stored rows with only these. */
  readonly deciding: readonly string[];
  /** The columns in which the row that was read differs; none if it is equal or older. */
  differing(stored: LakeRow, read: LakeRow): string[];
  merge(stored: LakeRow, read: LakeRow): LakeRow;
}

export function createMergeRule(stream: Stream, columns: readonly FileColumn[]): MergeRule {
  const own = ownColumns(stream);
  const deciding = [...own.map(({ name }) => name), '_extra', '_missing_since', '_run_id'];
  const indexOf = (name: string): number => columns.findIndex((column) => column.name === name);
  const ownIndexes = own.map(({ name, kind }, i) => ({
    name,
    stored: i,
    read: indexOf(name),
    isSame: SAME[kind] ?? isSame,
  }));
  const both = (name: string) => ({ stored: deciding.indexOf(name), read: indexOf(name) });
  const [time, extra, run] = [both('timestamp'), both('_extra'), both('_run_id')];
  const missing = deciding.indexOf('_missing_since');
  const readingOf = (row: LakeRow, of: 'stored' | 'read') => ({
    at: micros(row[time[of]] ?? null),
    runId: (row[run[of]] ?? null) as string | null,
  });
  const ownExtra = createOwnExtra(stream);
  const known = new Set([...stream.columns.map(({ name }) => name), '_source', '_extra', '_synced_at', '_run_id']);
  known.add('_missing_since');
  const kept = columns.flatMap(({ name }, i) => (known.has(name) ? [] : [i]));
  const customer = columns.flatMap(({ name }, i) => (name.startsWith('customer_') ? [i] : []));
  const customerId = indexOf('customer_id');
  const knowledge = CUSTOMER_KNOWLEDGE.map(indexOf).filter((i) => i >= 0);
  const knows = (row: LakeRow): boolean => knowledge.some((i) => (row[i] ?? '') !== '');

  return {
    key: 'event_id',
    deciding,
    differing(stored, read) {
      const isMissing = (stored[missing] ?? null) !== null;
      if (outdates({ ...readingOf(stored, 'stored'), isMissing }, readingOf(read, 'read'))) return [];
      const found: string[] = [];
      for (const at of ownIndexes) {
        if (!at.isSame(stored[at.stored] ?? null, read[at.read] ?? null)) found.push(at.name);
      }
      if (!isDeepStrictEqual(ownExtra(stored[extra.stored]), ownExtra(read[extra.read]))) found.push('_extra');
      // The service shows the event, so it has not vanished.
      if (isMissing) found.push('_missing_since');
      return found;
    },
    merge(stored, read) {
      const merged = [...read];
      for (const i of kept) merged[i] = stored[i] ?? null;
      // The placeholder of a deleted customer must not overwrite known values of the same customer.
      const isPlaceholder = !knows(read) && knows(stored) && stored[customerId] === read[customerId];
      if (customerId >= 0 && isPlaceholder) for (const i of customer) merged[i] = stored[i] ?? null;
      return merged;
    },
  };
}

type Same = (a: Value, b: Value) => boolean;

const isSame: Same = (a, b) => a === b;

const SAME: Partial<Record<FileColumn['kind'], Same>> = {
  timestamp: (a, b) => a === b || isSameInstant(a, b),
  // Compared as Postgres stores it: a text that one sink sanitizes and another keeps counts as equal.
  text: (a, b) =>
    a === b || (a !== null && b !== null && POSTGRES_TEXT.text(String(a)) === POSTGRES_TEXT.text(String(b))),
  json: (a, b) => a === b || (a !== null && b !== null && isDeepStrictEqual(parsed(a), parsed(b))),
};

const micros = (instant: Value): number => Math.round(Number(instant) * 1000);

/** Equal to the microsecond, the resolution of the files. */
export const isSameInstant: Same = (a, b) => a !== null && b !== null && micros(a) === micros(b);

/** `_extra` without unknown fields of link and customer, which are joined too. `{}` equals null. */
function createOwnExtra(stream: Stream): (extra: Value | undefined) => unknown {
  const joined = new Set([...joinedKeys(stream), SANITIZED]);
  return (extra = null) => {
    const value = extra === null ? null : parsed(extra);
    if (!isObject(value)) return value;
    const own = Object.entries(value).filter(([key]) => !joined.has(key));
    return own.length === 0 ? null : Object.fromEntries(own);
  };
}

const parsed = (text: Value): unknown => parseJson(POSTGRES_TEXT.json(String(text)));

/** The bookkeeping values of new and changed rows: the times of writing, the run, and "not missing". */
export const bookkeeping = (now: Instant, runId: string): Value[] => [now, now, runId, null];
