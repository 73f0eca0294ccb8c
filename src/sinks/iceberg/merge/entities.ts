import { isNone } from '../../../model/columns.ts';
import type { Row } from '../../../model/flatten.ts';
import type { Instant } from '../../../model/instant.ts';
import { type Entity, LINKS, type Stream } from '../../../model/streams.ts';
import type { Incoming } from '../../files/compare-rows.ts';
import { mergeRows } from '../../files/merge.ts';
import { createEntityRow, createMergeLink, isSameValue, storeListing } from '../../files/merge-link.ts';
import type { MergeRule } from '../../files/merge-row.ts';
import type { LakeRow } from '../../files/partition-file.ts';
import { whileOpen } from '../../files/store/store.ts';
import { createSanitizer, newestEntities, UTF8_TEXT } from '../../merge-rule.ts';
import type { LinksSnapshot, Receipt } from '../../sink.ts';
import { entityDesign } from '../../table-columns.ts';
import { entityFiles, partsOf } from '../table-files.ts';
import { createTableWriter, type TableWriter, writableTable } from '../table-writer.ts';
import { inDraft, preparedTable, type Table, type Warehouse } from '../warehouse.ts';

interface EntityMerge {
  entity: Entity;
  stream: Stream;
  source: string;
  rows: readonly Row[];
  now: Instant;
}

/** The newest read wins, and an empty one never overwrites a full one: the rule of `postgres/merge.ts`, which has it in SQL. */
export async function mergeEntity(writer: TableWriter, merge: EntityMerge): Promise<void> {
  const { table } = writer;
  const { entity, source, now } = merge;
  const incoming = readings(table, merge);
  const files = writableTable(writer, entityFiles({ table, source }), { source });
  const rule = createEntityRule(table, entity);
  if (incoming.length > 0) await mergeRows(files, { rule, incoming, fullWindows: [] }, now);
}

function readings(table: Table, { entity, stream, source, rows, now }: EntityMerge): Incoming[] {
  const newest = newestEntities(entity, stream, rows, UTF8_TEXT);
  const toRow = createEntityRow(table.columns, stream.columns, { _source: source, _observed_at: now });
  const key = table.columns.findIndex(({ name }) => name === entity.key);
  return [...createSanitizer(stream, UTF8_TEXT).all(newest)].map((values) => {
    const row = toRow(values);
    return { id: String(row[key]), key: 0n, at: 0, row };
  });
}

function createEntityRule({ columns }: Table, entity: Entity): MergeRule {
  const knowledge = entity.knowledge.map((name) => columns.findIndex((column) => column.name === name));
  const knows = (row: LakeRow): boolean => knowledge.some((i) => !isNone(row[i] ?? null));
  const compared = columns.flatMap(({ name, kind }, i) => (name === '_observed_at' ? [] : [{ name, kind, i }]));
  const merge: MergeRule['merge'] = entity.name === 'links' ? createMergeLink(columns) : (_, read) => read;
  return {
    key: entity.key,
    deciding: columns.map(({ name }) => name),
    differing(stored, read) {
      const merged = merge(stored, read);
      if (knows(stored) && !knows(merged)) return [];
      return compared.flatMap(({ name, kind, i }) =>
        isSameValue(kind, stored[i] ?? null, merged[i] ?? null) ? [] : [name],
      );
    },
    merge,
  };
}

/** Replaces the source's files in the table of links, in one snapshot. */
export function replaceLinks(warehouse: Warehouse, snapshot: LinksSnapshot): Promise<Receipt> {
  const { source } = snapshot;
  const { state } = warehouse;
  return inDraft(warehouse, LINKS.name, async (draft) => {
    const table = await preparedTable(warehouse, entityDesign(LINKS));
    const parts = (await partsOf(table, { source })).filter(({ rows }) => rows > 0);
    return storeListing(state, draft, warehouse.name, snapshot, {
      columns: table.columns,
      async read(show) {
        for (const part of parts) {
          const present = await part.open();
          if (present) await whileOpen(present, show);
        }
      },
      async replace(rows) {
        const writer = createTableWriter(draft, table);
        for (const part of parts) await writer.drop(part);
        await writer.add(source, rows);
        await writer.publish();
      },
    });
  });
}
