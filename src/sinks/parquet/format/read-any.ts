import type { Value } from '../../../model/columns.ts';
import { parseMetadata } from './compression.ts';
import { readEnding } from './read.ts';
import type { ByteSource, FileColumn } from './types.ts';
import { readValues } from './values.ts';

/** A Parquet file of another writer: it can be read, and nothing of it is taken for granted. */
export interface AnyFile {
  /** As the file names it. */
  writer: string;
  names: ReadonlySet<string>;
  /** The number of rows of each group. */
  groups: readonly number[];
  /** Values of these columns, converted to their kinds; a column that the file lacks is null. */
  read(group: number, columns: readonly FileColumn[]): Promise<Value[][]>;
}

export async function readAny(source: ByteSource): Promise<AnyFile> {
  const footer = parseMetadata(await readEnding(source));
  return {
    writer: footer.created_by ?? 'a writer without a name',
    names: new Set(footer.schema.slice(1).map(({ name }) => name)),
    groups: footer.row_groups.map((group) => Number(group.num_rows)),
    read: (group, columns) => readValues(footer, group, columns, (start, end) => source.read(start, end)),
  };
}
