import {
  type Compression,
  type EncodedGroup,
  encodeFooter,
  encodeGroup,
  type FileColumn,
  fitsSchema,
  MAGIC,
  type ParquetFile,
  readFooter,
  type StoredGroup,
} from '../parquet/format/index.ts';
import { type ByteRange, evenParts, freshLayout, type Layout, type Segment } from './layout.ts';
import { createReshape, type LakeRow, type PartitionFile } from './partition-file.ts';
import { type Staged, whileOpen } from './store/store.ts';

/** A part of a new file: sorted rows, or a row group of another file whose bytes are copied. */
export type Piece = { rows: readonly LakeRow[] } | { copy: StoredGroup; from: PartitionFile };

/** Maps the rows of a row group to their new values. Rows that it omits are deleted. */
export type Edit = (rows: readonly LakeRow[]) => LakeRow[];

/** By the index of the row group. */
export type Edits = ReadonlyMap<number, Edit>;

interface NewFile {
  columns: readonly FileColumn[];
  compression: Compression;
  metadata: Readonly<Record<string, string>>;
  /** The layout, if the new file keeps the replaced one readable inside it. */
  around?: { layout: Layout; present: PartitionFile };
}

/** Writes a file, syncs it and reads its footer back. Only one row group is in memory. Returns undefined without rows. */
export async function writeFile(
  staged: Staged,
  { columns, compression, metadata, around }: NewFile,
  pieces: Iterable<Piece> | AsyncIterable<Piece>,
): Promise<(ParquetFile & { bytes: number }) | undefined> {
  const layout = around?.layout ?? freshLayout();
  const isKept = layout.kept.length > 0;
  const written: Array<EncodedGroup & { start: number }> = [];
  const copy = async (from: PartitionFile, range: ByteRange, start: number): Promise<void> => {
    let at = start;
    for await (const bytes of from.bytes(range)) {
      await staged.write(bytes, at);
      at += bytes.length;
    }
  };
  await staged.write(MAGIC, 0);
  for (const range of around ? layout.kept : []) await copy(around?.present as PartitionFile, range, range.start);
  for await (const piece of pieces) {
    if ('copy' in piece) {
      const { rows, length, chunks } = piece.copy;
      const start = isKept ? piece.copy.start : layout.allocate(length);
      if (!isKept) await copy(piece.from, piece.copy, start);
      written.push({ rows, length, chunks, start });
      continue;
    }
    for (const part of evenParts(piece.rows)) {
      const { bytes, rows, length, chunks } = await encodeGroup(columns, part, compression);
      const start = layout.allocate(length);
      await staged.write(bytes, start);
      written.push({ rows, length, chunks, start });
    }
  }
  if (written.length === 0) return undefined;
  const offsets = { starts: written.map(({ start }) => start), footerAt: layout.end() };
  await staged.write(encodeFooter(columns, written, metadata, offsets), offsets.footerAt);
  const rows = written.reduce((sum, group) => sum + group.rows, 0);
  return whileOpen(await staged.finish(), async (open) => {
    const found = await readFooter(open);
    if (found.rows !== rows) throw new Error(`${open.name} was written with ${rows} rows and reads back ${found.rows}`);
    return { ...found, bytes: open.size };
  });
}

interface Edited {
  present: PartitionFile | undefined;
  columns: readonly FileColumn[];
  edits?: Edits | undefined;
}

/** The pieces of a file's next version: untouched row groups are copied as bytes, rows of joined ones are sorted. */
export async function* piecesOf({ present, columns, edits }: Edited, segments: readonly Segment<LakeRow>[]) {
  const reshape = createReshape(present?.file.columns ?? columns, columns);
  const group = (i: number): StoredGroup => present?.file.groups[i] as StoredGroup;
  for (const segment of segments) {
    if ('copy' in segment) {
      yield { copy: group(segment.copy), from: present as PartitionFile };
      continue;
    }
    const { groups, added } = segment;
    const rows = [...added];
    for (const i of groups) {
      const stored = (await present?.rows(group(i)))?.map(reshape) ?? [];
      rows.push(...(edits?.get(i)?.(stored) ?? stored));
    }
    yield { rows: groups.length + added.length > 1 ? rows.sort(inOrder(columns)) : rows };
  }
}

/** The pieces of a version without new rows: row groups are not joined. */
export function editedPieces(present: PartitionFile, columns: readonly FileColumn[], edits?: Edits) {
  const isSameShape = fitsSchema(present.file, columns);
  const segments = [...present.file.groups.keys()].map((i) =>
    edits?.has(i) || !isSameShape ? { groups: [i], added: [] } : { copy: i },
  );
  return piecesOf({ present, columns, edits }, segments);
}

/** By time, then by id, so that the same rows give the same file. */
export function inOrder(columns: readonly FileColumn[]): (a: LakeRow, b: LakeRow) => number {
  const indexOf = (wanted: string): number => columns.findIndex(({ name }) => name === wanted);
  const [time, id] = [indexOf('timestamp'), indexOf('event_id')];
  return (a, b) => Number(a[time]) - Number(b[time]) || (String(a[id]) < String(b[id]) ? -1 : 1);
}
