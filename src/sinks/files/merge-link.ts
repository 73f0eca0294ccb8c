import { recordListing } from '../../cursor/cursors.ts';
import type { Queryable } from '../../cursor/database/index.ts';
import { checkFence } from '../../cursor/leases.ts';
import type { Value } from '../../model/columns.ts';
import type { Instant } from '../../model/instant.ts';
import { entityBookkeeping, LINK_COUNTERS, LINKS } from '../../model/streams.ts';
import { createSanitizer, UTF8_TEXT } from '../merge-rule.ts';
import type { FileColumn } from '../parquet/format/index.ts';
import type { LinksSnapshot, Receipt } from '../sink.ts';
import type { Change } from './change.ts';
import { databaseNow } from './event-index.ts';
import { isSameInstant } from './merge-row.ts';
import { createReshape, type LakeRow, type PartitionFile } from './partition-file.ts';

export const isSameValue = (kind: string, a: Value, b: Value): boolean =>
  a === b || (kind === 'timestamp' && isSameInstant(a, b));

/** Builds rows of the table of links or customers from values of other columns; `own` gives our own columns. */
export function createEntityRow(
  columns: readonly FileColumn[],
  from: readonly Pick<FileColumn, 'name'>[],
  own: Readonly<Record<string, Value>>,
): (values: readonly Value[]) => LakeRow {
  const indexes = columns.map(({ name }) => from.findIndex((column) => column.name === name));
  return (values) => indexes.map((at, i) => (at < 0 ? (own[columns[i]?.name ?? ''] ?? null) : (values[at] ?? null)));
}

const OWN: ReadonlySet<string> = new Set(entityBookkeeping(LINKS).map(({ name }) => name));

/** The rule of `postgres/merge.ts`: counters from the newest read, everything else from the read with the newer `updatedAt`. */
export function createMergeLink(columns: readonly FileColumn[]): (stored: LakeRow, read: LakeRow) => LakeRow {
  const updated = columns.findIndex(({ name }) => name === 'link_updated_at');
  const [counters, listings] = [new Set<number>(), new Set<number>()];
  for (const [i, { name }] of columns.entries()) {
    if (LINK_COUNTERS.has(name)) counters.add(i);
    if (OWN.has(name) && name !== '_observed_at') listings.add(i);
  }
  return (stored, read) => {
    const [before, after] = [stored[updated] ?? null, read[updated] ?? null];
    const isOlder = before !== null && after !== null && Number(after) < Number(before);
    return read.map((value, i) => {
      if (listings.has(i)) return stored[i] ?? null;
      return isOlder && !counters.has(i) && columns[i]?.name !== '_observed_at' ? (stored[i] ?? null) : value;
    });
  };
}

interface LinkFiles {
  columns: readonly FileColumn[];
  read(show: (file: PartitionFile) => Promise<void>): Promise<void>;
  /** Replaces all rows, atomically for readers. */
  replace(rows: readonly LakeRow[]): Promise<void>;
}

/** Writes the files and queues the state's record of the listing. The caller holds the lock. */
export async function storeListing(
  state: Queryable,
  change: Change,
  sink: string,
  snapshot: LinksSnapshot,
  { columns, read, replace }: LinkFiles,
): Promise<Receipt> {
  await checkFence(state, { ...snapshot, stream: 'links' });
  const key = columns.findIndex(({ name }) => name === LINKS.key);
  const stored = new Map<string, LakeRow>();
  await read(async ({ file, rows }) => {
    const reshape = createReshape(file.columns, columns);
    for (const group of file.groups)
      for (const row of (await rows(group)).map(reshape)) stored.set(String(row[key]), row);
  });
  const { rows, receipt } = mergeListing(columns, stored, snapshot, await databaseNow(state));
  const prove = async (tx: Queryable): Promise<void> => {
    await checkFence(tx, { ...snapshot, stream: 'links' });
    await recordListing(tx, { source: snapshot.source, sink }, snapshot);
  };
  change.later(prove, { movesCursor: true });
  await replace(rows);
  return receipt;
}

/** Merges a listing into the stored rows of a source. Returns all rows, sorted by id, and the receipt. */
function mergeListing(
  columns: readonly FileColumn[],
  stored: ReadonlyMap<string, LakeRow>,
  snapshot: LinksSnapshot,
  now: Instant,
): { rows: LakeRow[]; receipt: Receipt } {
  const indexOf = (name: string): number => columns.findIndex((column) => column.name === name);
  const [id, created, observed] = [indexOf(LINKS.key), indexOf('link_created_at'), indexOf('_observed_at')];
  const [listed, missing] = [indexOf('_listed_at'), indexOf('_missing_since')];
  const merge = createMergeLink(columns);
  const compared = columns.flatMap(({ name, kind }, i) => (OWN.has(name) ? [] : [{ i, kind }]));
  const sanitizer = createSanitizer(LINKS, UTF8_TEXT);
  const toRow = createEntityRow(columns, LINKS.columns, { _source: snapshot.source, _observed_at: now });
  const counts = { new: 0, changed: 0, unchanged: 0 };
  const all = new Map<string, LakeRow>();
  for (const values of sanitizer.all(snapshot.rows)) {
    const read = toRow(values);
    const before = stored.get(String(read[id]));
    // As in Postgres: an event that was read after the listing began has newer counters.
    const isNewer = before !== undefined && Number(before[observed]) > snapshot.startedAt;
    const after = before ? merge(before, isNewer ? withCounters(columns, read, before) : read) : read;
    const isChanged =
      before !== undefined &&
      (before[missing] !== null ||
        compared.some(({ i, kind }) => !isSameValue(kind, before[i] ?? null, after[i] ?? null)));
    if (before && !isChanged) after[observed] = before[observed] ?? now;
    counts[before ? (isChanged ? 'changed' : 'unchanged') : 'new'] += 1;
    after[listed] = snapshot.startedAt;
    after[missing] = null;
    all.set(String(after[id]), after);
  }
  for (const [key, row] of stored) {
    if (all.has(key)) continue;
    const madeAt = row[created] ?? null;
    const isOld = madeAt === null ? Number(row[observed]) < snapshot.startedAt : Number(madeAt) < snapshot.at;
    const isGone = snapshot.isProven && row[missing] === null && isOld;
    if (isGone) counts.changed += 1;
    all.set(key, isGone ? row.with(missing, snapshot.startedAt) : row);
  }
  const rows = [...all].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b))).map(([, row]) => row);
  return { rows, receipt: { ...counts, sanitized: sanitizer.sanitized() } };
}

const withCounters = (columns: readonly FileColumn[], read: LakeRow, stored: LakeRow): LakeRow =>
  read.map((value, i) => (LINK_COUNTERS.has(columns[i]?.name ?? '') ? (stored[i] ?? null) : value));
