import type { Value } from '../../model/columns.ts';
import type { Instant } from '../../model/instant.ts';
import { isObject, parseJson } from '../../model/json.ts';
import { CUSTOMER_KNOWLEDGE, type Stream } from '../../model/streams.ts';
import { joinedKeys, outdates, ownColumns, POSTGRES_TEXT, SANITIZED } from '../merge-rule.ts';
import type { FileColumn } from './format/index.ts';
import type { LakeRow } from './partition-file.ts';

/** What the warehouse says in SQL (`postgres/merge.ts`), for rows in memory. */
export interface MergeRule {
  /** The columns that decide; `differing` takes stored rows of these alone. */
  readonly deciding: readonly string[];
  /** The columns that a reading changes; none where it is what is stored, or outdated by it. */
  differing(stored: LakeRow, read: LakeRow): string[];
  /** The stored row with what was read; both in the columns given. */
  merge(stored: LakeRow, read: LakeRow): LakeRow;
}

export function createMergeRule(stream: Stream, columns: readonly FileColumn[]): MergeRule {
  const own = ownColumns(stream);
  const deciding = [...own.map(({ name }) => name), '_extra', '_missing_since', '_run_id'];
  const place = (name: string): number => columns.findIndex((column) => column.name === name);
  const ownPlaces = own.map(({ name, kind }, i) => ({
    name,
    stored: i,
    read: place(name),
    isSame: SAME[kind] ?? isSame,
  }));
  const both = (name: string) => ({ stored: deciding.indexOf(name), read: place(name) });
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
  const customerId = place('customer_id');
  const knowledge = CUSTOMER_KNOWLEDGE.map(place).filter((i) => i >= 0);
  const knows = (row: LakeRow): boolean => knowledge.some((i) => (row[i] ?? '') !== '');

  return {
    deciding,
    differing(stored, read) {
      const isMissing = (stored[missing] ?? null) !== null;
      if (outdates({ ...readingOf(stored, 'stored'), isMissing }, readingOf(read, 'read'))) return [];
      const found: string[] = [];
      for (const at of ownPlaces) {
        if (!at.isSame(stored[at.stored] ?? null, read[at.read] ?? null)) found.push(at.name);
      }
      if (ownExtra(stored[extra.stored]) !== ownExtra(read[extra.read])) found.push('_extra');
      // It is shown, so it has not vanished.
      if (isMissing) found.push('_missing_since');
      return found;
    },
    merge(stored, read) {
      const merged = [...read];
      for (const i of kept) merged[i] = stored[i] ?? null;
      // The placeholder of a deleted customer must not overwrite what is known of the same one.
      const isPlaceholder = !knows(read) && knows(stored) && stored[customerId] === read[customerId];
      if (customerId >= 0 && isPlaceholder) for (const i of customer) merged[i] = stored[i] ?? null;
      return merged;
    },
  };
}

type Same = (a: Value, b: Value) => boolean;

const isSame: Same = (a, b) => a === b;

const SAME: Partial<Record<FileColumn['kind'], Same>> = {
  // To the microsecond, which is what a file holds.
  timestamp: (a, b) => a === b || (a !== null && b !== null && micros(a) === micros(b)),
  // As the warehouse would hold it: a text that one sink has to sanitize and another keeps is the same text.
  text: (a, b) =>
    a === b || (a !== null && b !== null && POSTGRES_TEXT.text(String(a)) === POSTGRES_TEXT.text(String(b))),
  json: (a, b) => a === b || (a !== null && b !== null && canonical(String(a)) === canonical(String(b))),
};

const micros = (instant: Value): number => Math.round(Number(instant) * 1000);

/** What is unknown of link and customer is joined too. Where nothing else was unknown, `{}` is as good as none. */
function createOwnExtra(stream: Stream): (extra: Value | undefined) => string | null {
  const joined = new Set([...joinedKeys(stream), SANITIZED]);
  return (extra) => {
    if (extra === null || extra === undefined) return null;
    const value = parseJson(POSTGRES_TEXT.json(String(extra)));
    if (!isObject(value)) return sorted(value);
    const own = Object.entries(value).filter(([key]) => !joined.has(key));
    return own.length === 0 ? null : sorted(Object.fromEntries(own));
  };
}

const canonical = (text: string): string => sorted(parseJson(POSTGRES_TEXT.json(text)));

/** One text for equal values, whatever the order of their keys. */
function sorted(value: unknown): string {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(sorted).join()}]`;
  const entries = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}:${sorted(inner)}`);
  return `{${entries.sort().join()}}`;
}

/** The moment and the run are written into a row that is new or changed. */
export const bookkeeping = (now: Instant, runId: string): Value[] => [now, now, runId, null];
