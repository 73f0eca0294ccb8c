import { isNone } from '../../../model/columns.ts';
import type { Row } from '../../../model/flatten.ts';
import type { Instant } from '../../../model/instant.ts';
import type { Entity, Stream } from '../../../model/streams.ts';
import { mergeRows } from '../../files/merge.ts';
import { createEntityRow, createMergeLink, isSameValue } from '../../files/merge-link.ts';
import type { MergeRule } from '../../files/merge-row.ts';
import type { LakeRow } from '../../files/partition-file.ts';
import type { Incoming } from '../../files/survey.ts';
import { createSanitizer, newestEntities, UTF8_TEXT } from '../../merge-rule.ts';
import { createTableWriter, type NewFiles } from '../parts.ts';
import { entityFiles, writableTable } from '../table-files.ts';
import type { Draft, Table } from '../warehouse.ts';

interface EntityMerge {
  draft: Draft;
  table: Table;
  entity: Entity;
  stream: Stream;
  source: string;
  rows: readonly Row[];
  now: Instant;
}

/**
 * Links and customers as last seen: the newest reading wins, an unchanged row is left alone, and an empty reading never
 * overwrites a full one. `postgres/merge.ts` states the same rule in SQL.
 */
export async function mergeEntity(options: EntityMerge): Promise<NewFiles> {
  const { draft, table, entity, source, now } = options;
  const writer = createTableWriter(draft, table, source);
  const incoming = readings(options);
  const files = entityFiles({ warehouse: draft.warehouse, table, source });
  const rule = createEntityRule(table, entity);
  if (incoming.length > 0)
    await mergeRows(writableTable(draft, files, { table, writer }), { rule, incoming, wholes: [] }, now);
  return writer;
}

/** The entities of a batch, as rows of the table. */
function readings({ table, entity, stream, source, rows, now }: EntityMerge): Incoming[] {
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
