import { isNone, type Value } from '../../../model/columns.ts';
import type { Row } from '../../../model/flatten.ts';
import type { Instant } from '../../../model/instant.ts';
import type { Entity, Stream } from '../../../model/streams.ts';
import { createMergeLink, isSameValue } from '../../files/merge-link.ts';
import { createReshape, type LakeRow, type PartitionFile } from '../../files/partition-file.ts';
import { type Edit, type Edits, editedPieces } from '../../files/write-file.ts';
import { createSanitizer, newestEntities, UTF8_TEXT } from '../../merge-rule.ts';
import { openIfThere, writeDataFile } from '../data-file.ts';
import type { NewFiles } from '../merge-events.ts';
import { openStrangers, replaceStranger } from '../strangers.ts';
import { type Draft, filesOf, type Table } from '../warehouse.ts';

interface EntityMerge {
  draft: Draft;
  table: Table;
  entity: Entity;
  stream: Stream;
  source: string;
  rows: readonly Row[];
  now: Instant;
  beat(): Promise<void>;
}

/**
 * Links and customers as last seen: the newest reading wins, an unchanged row is left alone, and an empty reading never
 * overwrites a full one. `postgres/merge.ts` states the same rule in SQL.
 */
export async function mergeEntity(options: EntityMerge): Promise<NewFiles> {
  const { draft, table, entity, source, beat } = options;
  const sought = readings(options);
  const { added, removed }: NewFiles = { added: [], removed: [] };
  if (sought.size === 0) return { added, removed };
  const target = { table, source, day: undefined, beat };
  const files = await filesOf(draft.warehouse, table, { source });
  for (const entry of files.filter((one) => one.source === source)) {
    await beat();
    if (sought.size === 0) break;
    const present = await openIfThere(draft.warehouse, entry.file);
    try {
      const edits = present ? await newReadings(present, options, sought) : NO_EDITS;
      if (present && edits.size === 0) continue;
      removed.push(entry);
      if (!present) continue;
      added.push(...(await writeDataFile(draft, target, editedPieces(present, table.columns, edits))));
    } finally {
      await present?.close();
    }
  }
  for (const stranger of await openStrangers(draft.warehouse, table, files)) {
    await beat();
    const edits = await newReadings(stranger.of(source), options, sought);
    if (edits.size === 0) continue;
    removed.push(stranger.entry);
    added.push(...(await replaceStranger(draft, table, stranger, { source, edits })));
  }
  const key = table.columns.findIndex(({ name }) => name === entity.key);
  const rows = [...sought.values()].sort((a, b) => Buffer.compare(bytesOf(a[key]), bytesOf(b[key])));
  added.push(...(await writeDataFile(draft, target, rows.length > 0 ? [{ rows }] : [])));
  return { added, removed };
}

const NO_EDITS: Edits = new Map();

/** What a file holds of the entities sought, which are then no longer sought, and where it has to change. */
async function newReadings(
  present: PartitionFile,
  { table, entity }: EntityMerge,
  sought: Map<string, LakeRow>,
): Promise<Edits> {
  const key = table.columns.findIndex(({ name }) => name === entity.key);
  const isChanged = createIsChanged(table, entity);
  const merge = entity.name === 'links' ? createMergeLink(table.columns) : (_: LakeRow, read: LakeRow): LakeRow => read;
  const reshape = createReshape(present.file.columns, table.columns);
  const edits = new Map<number, Edit>();
  for (const [i, group] of present.file.groups.entries()) {
    const ids = await present.rows(group, [entity.key]);
    if (!ids.some(([id]) => sought.has(String(id)))) continue;
    const news = new Map<number, LakeRow>();
    for (const [n, stored] of (await present.rows(group)).map(reshape).entries()) {
      const read = sought.get(String(stored[key]));
      if (!read) continue;
      sought.delete(String(stored[key]));
      const merged = merge(stored, read);
      if (isChanged(stored, merged)) news.set(n, merged);
    }
    if (news.size > 0) edits.set(i, (rows) => rows.map((row, n) => news.get(n) ?? row));
  }
  return edits;
}

/** Iceberg orders text by its bytes. */
const bytesOf = (value: Value | undefined): Buffer => Buffer.from(String(value));

/** The entities of a batch by id, as rows of the table. */
function readings({ table, entity, stream, source, rows, now }: EntityMerge): Map<string, LakeRow> {
  const newest = newestEntities(entity, stream, rows, UTF8_TEXT);
  const places = table.columns.map(({ name }) => stream.columns.findIndex((column) => column.name === name));
  const own = { _source: source, _observed_at: now } as Record<string, Value>;
  const found = new Map<string, LakeRow>();
  const key = table.columns.findIndex(({ name }) => name === entity.key);
  for (const values of createSanitizer(stream, UTF8_TEXT).all(newest)) {
    const row = places.map((at, i) => (at < 0 ? (own[table.columns[i]?.name ?? ''] ?? null) : (values[at] ?? null)));
    found.set(String(row[key]), row);
  }
  return found;
}

function createIsChanged({ columns }: Table, entity: Entity): (stored: LakeRow, read: LakeRow) => boolean {
  const knowledge = entity.knowledge.map((name) => columns.findIndex((column) => column.name === name));
  const knows = (row: LakeRow): boolean => knowledge.some((i) => !isNone(row[i] ?? null));
  const compared = columns.flatMap(({ name, kind }, i) => (name === '_observed_at' ? [] : [{ i, kind }]));
  return (stored, read) =>
    (knows(read) || !knows(stored)) &&
    compared.some(({ i, kind }) => !isSameValue(kind, stored[i] ?? null, read[i] ?? null));
}
