import type { Kind, Value } from '../../../model/columns.ts';
import { openGroup, parseMetadata } from './compression.ts';
import { readEnding } from './read.ts';
import { type ByteSource, exactName, type FileColumn, restoreInstant, restoreInteger } from './types.ts';

/** A Parquet file of another writer: it can be read, and nothing of it is taken for granted. */
export interface AnyFile {
  /** As the file names it. */
  writer: string;
  names: ReadonlySet<string>;
  /** The number of rows of each group. */
  groups: readonly number[];
  /** Values of these columns, converted to their kinds; JSON stays text, and a column that the file lacks is null. */
  read(group: number, columns: readonly FileColumn[]): Promise<Value[][]>;
}

export async function readAny(source: ByteSource): Promise<AnyFile> {
  const metadata = parseMetadata(await readEnding(source));
  const names = new Set(metadata.schema.slice(1).map(({ name }) => name));
  const groups = metadata.row_groups;
  return {
    writer: metadata.created_by ?? 'a writer without a name',
    names,
    groups: groups.map((group) => Number(group.num_rows)),
    async read(number, columns) {
      const group = groups[number];
      if (!group) throw new RangeError(`there is no group ${number}`);
      const alone = { ...metadata, row_groups: [group], num_rows: group.num_rows };
      const readColumn = await openGroup(alone, (start, end) => source.read(start, end));
      const rows = Array.from({ length: Number(group.num_rows) }, () => new Array<Value>(columns.length).fill(null));
      const fill = async (name: string, at: number, convert: (value: unknown) => Value): Promise<void> => {
        if (!names.has(name)) return;
        const values = await readColumn(name);
        rows.forEach((row, i) => {
          const value = values[i] ?? null;
          if (value !== null) row[at] = convert(value);
        });
      };
      for (const [at, { name, kind }] of columns.entries()) {
        await fill(name, at, CONVERT[kind]);
        if (kind === 'number') await fill(exactName(name), at, (value) => BigInt(String(value)));
      }
      return rows;
    },
  };
}

const toText = (value: unknown): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : String(value);

const CONVERT: Readonly<Record<Kind, (value: unknown) => Value>> = {
  text: toText,
  json: toText,
  boolean: Boolean,
  number: Number,
  integer: (value) => restoreInteger(BigInt(value as bigint)),
  timestamp: (value) => restoreInstant(BigInt(value as bigint)),
};
