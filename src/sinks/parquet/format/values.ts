import type { Kind, Value } from '../../../model/columns.ts';
import { type Metadata, openGroup } from './compression.ts';
import { createYield } from './group.ts';
import { type ByteSource, exactName, type FileColumn, restoreInstant, restoreInteger } from './types.ts';

/** The rows of a group, with values of these columns, converted to their kinds. A column that the file lacks is null. */
export async function readValues(
  footer: Metadata,
  number: number,
  columns: ReadonlyArray<Pick<FileColumn, 'name' | 'kind'>>,
  read: ByteSource['read'],
): Promise<Value[][]> {
  const group = footer.row_groups[number];
  if (!group) throw new RangeError(`there is no group ${number}`);
  const names = new Set(footer.schema.slice(1).map(({ name }) => name));
  const readColumn = await openGroup({ ...footer, row_groups: [group], num_rows: group.num_rows }, read);
  const rows = Array.from({ length: Number(group.num_rows) }, () => new Array<Value>(columns.length).fill(null));
  const fill = async (name: string, at: number, convert: (value: unknown) => Value): Promise<void> => {
    if (!names.has(name)) return;
    const values = await readColumn(name);
    if (values.length !== rows.length) throw new RangeError(`a column has ${values.length} values`);
    rows.forEach((row, i) => {
      const value = values[i] ?? null;
      if (value !== null) row[at] = convert(value);
    });
  };
  const yieldNow = createYield();
  for (const [at, { name, kind }] of columns.entries()) {
    await fill(name, at, CONVERT[kind]);
    if (kind === 'number') await fill(exactName(name), at, (value) => BigInt(String(value)));
    await yieldNow();
  }
  return rows;
}

/** Other writers may give a text without saying that it is one. */
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
