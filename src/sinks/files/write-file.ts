import {
  type Compression,
  encodeFooter,
  encodeGroup,
  type FileColumn,
  fitsSchema,
  MAGIC,
  type ParquetFile,
  type PlacedGroup,
  readFooter,
  type StoredGroup,
} from '../parquet/format/index.ts';
import { evenParts, freshLayout, type Layout, type Stretch } from './layout.ts';
import { createReshape, type LakeRow, type PartitionFile } from './partition-file.ts';
import { type Staged, whileOpen } from './store/store.ts';

/** A piece of a new file: sorted rows, or a row group of another file whose bytes are copied. */
export type Piece = { rows: readonly LakeRow[] } | { copy: StoredGroup; from: PartitionFile };

/** Maps the rows of one group to the new columns. Rows that it omits are deleted. */
export type Edit = (rows: readonly LakeRow[]) => LakeRow[];

/** By the index of the group. */
export type Edits = ReadonlyMap<number, Edit>;

interface NewFile {
  columns: readonly FileColumn[];
  compression: Compression;
  metadata: Readonly<Record<string, string>>;
  /** Where groups go, if the file it replaces stays readable inside it. */
  around?: { layout: Layout; present: PartitionFile };
  /** Called between groups: this may take longer than a lease lasts. */
  beat?(): Promise<void>;
}

/**
 * Writes a file in bounded memory, syncs it and reads it back: only a group and its new rows are held at once. Readers do not see it before
 * the caller publishes it. Without rows nothing is written.
 */
export async function writeFile(
  staged: Staged,
  { columns, compression, metadata, around, beat }: NewFile,
  pieces: Iterable<Piece> | AsyncIterable<Piece>,
): Promise<(ParquetFile & { bytes: number }) | undefined> {
  const layout = around?.layout ?? freshLayout();
  const isKept = layout.kept.length > 0;
  const written: Array<PlacedGroup & { start: number }> = [];
  const copy = async (from: PartitionFile, stretch: Stretch, start: number): Promise<void> => {
    let at = start;
    for await (const bytes of from.bytes(stretch)) {
      await staged.write(bytes, at);
      at += bytes.length;
    }
  };
  await staged.write(MAGIC, 0);
  for (const stretch of around ? layout.kept : []) await copy(around?.present as PartitionFile, stretch, stretch.start);
  for await (const piece of pieces) {
    await beat?.();
    if ('copy' in piece) {
      const { rows, length, chunks } = piece.copy;
      const start = isKept ? piece.copy.start : layout.place(length);
      if (!isKept) await copy(piece.from, piece.copy, start);
      written.push({ rows, length, chunks, start });
      continue;
    }
    for (const part of evenParts(piece.rows)) {
      const { bytes, rows, length, chunks } = await encodeGroup(columns, part, compression);
      const start = layout.place(length);
      await staged.write(bytes, start);
      written.push({ rows, length, chunks, start });
    }
  }
  if (written.length === 0) return undefined;
  const places = { starts: written.map(({ start }) => start), footerAt: layout.end() };
  await staged.write(encodeFooter(columns, written, metadata, places), places.footerAt);
  return readBack(
    staged,
    written.reduce((sum, { rows }) => sum + rows, 0),
  );
}

/** Before publishing: checks that the file on disk is valid and holds what was written. */
async function readBack(staged: Staged, rows: number): Promise<ParquetFile & { bytes: number }> {
  return whileOpen(await staged.finish(), async (open) => {
    const found = await readFooter(open);
    if (found.rows !== rows) throw new Error(`${open.name} was written with ${rows} rows and reads back ${found.rows}`);
    return { ...found, bytes: open.size };
  });
}

/** The pieces of a file's next version: untouched row groups are copied as they are. */
export async function* editedPieces(
  present: PartitionFile,
  columns: readonly FileColumn[],
  edits: Edits,
): AsyncGenerator<Piece> {
  const reshape = createReshape(present.file.columns, columns);
  const isSameShape = fitsSchema(present.file, columns);
  for (const [i, group] of present.file.groups.entries()) {
    const edit = edits.get(i);
    if (!edit && isSameShape) {
      yield { copy: group, from: present };
      continue;
    }
    const rows = (await present.rows(group)).map(reshape);
    yield { rows: edit ? edit(rows) : rows };
  }
}
