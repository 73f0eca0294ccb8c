import { createLayout, freshLayout, planSegments, type Segment } from '../files/layout.ts';
import { type LakeRow, META, type PartitionFile, schemaVersion, timesOf } from '../files/partition-file.ts';
import type { Staged } from '../files/store/store.ts';
import { type Edits, inOrder, piecesOf, writeFile } from '../files/write-file.ts';
import { type FileColumn, fitsSchema, type ParquetFile } from './format/index.ts';
import type { Lake } from './lake.ts';

interface NextFile {
  path: string;
  present: PartitionFile | undefined;
  columns: readonly FileColumn[];
  edits: Edits;
  added: readonly LakeRow[];
  /** Every row of the new file, in place of those above: for rows without a time. */
  all?: readonly LakeRow[];
  /** Whether the new file must hold nothing of what was replaced. */
  isFresh?: boolean;
  metadata: Readonly<Record<string, string>>;
}

/** A next file: written, synced, read back, and not published yet. */
export interface Rewritten {
  file: ParquetFile;
  staged: Staged;
}

/** Undefined if no row is left. */
export async function writeNext(lake: Lake, options: NextFile): Promise<Rewritten | undefined> {
  const { present, columns } = options;
  const segments = options.all ? [] : segmentsOf(options);
  const copied = new Set(segments.flatMap((segment) => ('copy' in segment ? [segment.copy] : [])));
  const layout = present && !options.isFresh ? createLayout(present, (i) => copied.has(i)) : freshLayout();
  // Its schema; and whether it still holds the previous version, which may contain data to be erased.
  const marks = { [META.schema]: schemaVersion(columns), [META.before]: layout.kept.length > 0 ? 'yes' : 'no' };
  const staged = await lake.store.stage(options.path);
  try {
    const file = await writeFile(
      staged,
      {
        columns,
        compression: lake.compression,
        metadata: { ...options.metadata, ...marks },
        ...(present && { around: { layout, present } }),
      },
      options.all ? [{ rows: options.all }] : piecesOf(options, segments),
    );
    if (file) return { staged, file };
    await staged.discard();
    return undefined;
  } catch (error) {
    await staged.discard();
    throw error;
  }
}

function segmentsOf({ present, columns, edits, added }: NextFile): Segment<LakeRow>[] {
  const isSameShape = present !== undefined && fitsSchema(present.file, columns);
  const time = columns.findIndex(({ name }) => name === 'timestamp');
  return planSegments(
    (present?.file.groups ?? []).map((group, i) => ({
      rows: group.rows,
      ...timesOf(group),
      isTouched: edits.has(i) || !isSameShape,
    })),
    [...added].sort(inOrder(columns)).map((row) => ({ at: Number(row[time]), row })),
  );
}
