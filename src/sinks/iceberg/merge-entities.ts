import { isNone, type Value } from '../../model/columns.ts';
import type { Row } from '../../model/flatten.ts';
import type { Instant } from '../../model/instant.ts';
import type { Entity, Stream } from '../../model/streams.ts';
import { newestEntities } from '../merge-rule.ts';
import { createReshape, type LakeRow } from '../parquet/file/columns.ts';
import { createSanitizer, UTF8_TEXT } from '../sanitize-rows.ts';
import { editedPieces, openDataFile, writeDataFile } from './data-file.ts';
import type { DataFile } from './format/manifest.ts';
import { filesOf, type Table, type TableFile } from './table.ts';
import type { Draft } from './warehouse.ts';

export interface EntityMerge {
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
 * Links and customers as last seen: the newest reading wins, a row that did not change is left alone, and what knows nothing never
 * overwrites what does. As the warehouse says it in SQL (`postgres/merge-entity.ts`).
 */
export async function mergeEntity(options: EntityMerge): Promise<{ added: DataFile[]; removed: TableFile[] }> {
  const { draft, table, entity, source, beat } = options;
  const sought = readings(options);
  const [added, removed]: [DataFile[], TableFile[]] = [[], []];
  if (sought.size === 0) return { added, removed };
  const names = table.columns.map(({ name }) => name);
  const key = names.indexOf(entity.key);
  const isChanged = createIsChanged(table, entity);
  for (const entry of await filesOf(draft.warehouse, table, { source })) {
    await beat();
    if (sought.size === 0) break;
    const present = await openDataFile(draft.warehouse, entry.file);
    try {
      const reshape = createReshape(present.file.columns, table.columns);
      const edits = new Map<number, (rows: readonly LakeRow[]) => LakeRow[]>();
      for (const [i, group] of present.file.groups.entries()) {
        const ids = await present.rows(group, [entity.key]);
        if (!ids.some(([id]) => sought.has(String(id)))) continue;
        const news = new Map<number, LakeRow>();
        for (const [n, stored] of (await present.rows(group)).map(reshape).entries()) {
          const read = sought.get(String(stored[key]));
          if (!read) continue;
          sought.delete(String(stored[key]));
          if (isChanged(stored, read)) news.set(n, read);
        }
        if (news.size > 0) edits.set(i, (rows) => rows.map((row, n) => news.get(n) ?? row));
      }
      if (edits.size === 0) continue;
      const pieces = editedPieces(present, table.columns, edits);
      const file = await writeDataFile(draft, { table, source, day: undefined, beat }, pieces);
      removed.push(entry);
      if (file) added.push(file);
    } finally {
      await present.close();
    }
  }
  const rows = [...sought.values()].sort((a, b) => Buffer.compare(bytesOf(a[key]), bytesOf(b[key])));
  const file = await writeDataFile(draft, { table, source, day: undefined, beat }, rows.length > 0 ? [{ rows }] : []);
  if (file) added.push(file);
  return { added, removed };
}

/** Iceberg orders text by its bytes. */
const bytesOf = (value: Value | undefined): Buffer => Buffer.from(String(value));

/** By id: what the batch says of each, as a row of the table. */
function readings({ table, entity, stream, source, rows, now }: EntityMerge): Map<string, LakeRow> {
  const newest = newestEntities(entity, stream, rows);
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
  const isSame = (kind: string, a: Value, b: Value): boolean =>
    a === b || (kind === 'timestamp' && a !== null && b !== null && micros(a) === micros(b));
  return (stored, read) =>
    (knows(read) || !knows(stored)) &&
    compared.some(({ i, kind }) => !isSame(kind, stored[i] ?? null, read[i] ?? null));
}

const micros = (instant: Value): number => Math.round(Number(instant) * 1000);
