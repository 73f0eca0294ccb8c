import { parseMetadata } from './compression.ts';
import { readEnding } from './read.ts';
import type { ByteSource, FileColumn } from './types.ts';
import { readValues } from './values.ts';

export type AnyFile = Awaited<ReturnType<typeof readAny>>;

/** A Parquet file of another writer: it can be read, and nothing of it is taken for granted. */
export async function readAny(source: ByteSource) {
  const footer = parseMetadata(await readEnding(source));
  return {
    /** As the file names it. */
    writer: footer.created_by ?? 'a writer without a name',
    names: new Set(footer.schema.slice(1).map(({ name }) => name)),
    /** The number of rows of each group. */
    groups: footer.row_groups.map((group) => Number(group.num_rows)),
    /** Values of these columns, converted to their kinds; a column that the file lacks is null. */
    read: (group: number, columns: readonly FileColumn[]) =>
      readValues(footer, group, columns, (start, end) => source.read(start, end)),
  };
}
