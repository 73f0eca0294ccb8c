import type { Kind, Value } from '../../../model/columns.ts';
import { encodeFooter } from './footer.ts';
import { openGroup, parseMetadata } from './hyparquet.ts';
import { exactName, restoreInstant, restoreInteger } from './leaves.ts';
import { torn } from './read-footer.ts';
import { type ByteSource, MAGIC, type ParquetFile, type StoredGroup } from './types.ts';
import { createYield } from './yield.ts';

/**
 * The rows of a group, each with a value for every column of the file, or for the named ones in the order of the names. Rows share
 * what is the same in them: JSON that repeats is one object.
 */
export async function readGroup(
  source: ByteSource,
  file: ParquetFile,
  group: StoredGroup,
  names?: readonly string[],
): Promise<Value[][]> {
  const wanted = names ?? file.columns.map(({ name }) => name);
  const kinds = new Map(file.columns.map(({ name, kind }) => [name, kind]));
  const missing = wanted.find((name) => !kinds.has(name));
  if (missing !== undefined) throw new Error(`${source.name ?? 'the file'} has no column ${missing}`);
  // All of it in one request, or only what was asked for.
  const whole = names ? undefined : await source.read(group.start, group.end);
  // As if the group stood alone in a file: right behind MAGIC.
  const shift = group.start - MAGIC.length;
  let failure: unknown;
  const read = async (start: number, end: number): Promise<Uint8Array> => {
    if (whole) return whole.subarray(start - MAGIC.length, end - MAGIC.length);
    try {
      return await source.read(start + shift, end + shift);
    } catch (error) {
      // Recovery: the caller's; it must not be taken for a fault of the file.
      failure = error;
      throw error;
    }
  };

  const rows = Array.from({ length: group.rows }, () => new Array<Value>(wanted.length).fill(null));
  const yieldNow = createYield();
  try {
    const readColumn = await openGroup(parseMetadata(encodeFooter(file.columns, [group], {})), read);
    for (const [at, name] of wanted.entries()) {
      const kind = kinds.get(name) as Kind;
      fill(rows, at, await readColumn(name), RESTORE[kind]);
      if (kind === 'number') fill(rows, at, await readColumn(exactName(name)), BigInt);
      await yieldNow();
    }
  } catch (error) {
    if (error === failure) throw error;
    // Recovery: none; what is said of the file tells the person how to get its rows back.
    throw torn(source, `a group of ${group.rows} rows at byte ${group.start} cannot be read`, error);
  }
  return rows;
}

function fill(rows: Value[][], at: number, values: ArrayLike<unknown>, restore: (value: never) => Value): void {
  if (values.length !== rows.length) throw new RangeError(`a column has ${values.length} values`);
  rows.forEach((row, i) => {
    const value = values[i] ?? null;
    if (value !== null) row[at] = restore(value as never);
  });
}

const same = (value: Value): Value => value;

const RESTORE: Readonly<Record<Kind, (value: never) => Value>> = {
  text: same,
  json: same,
  boolean: same,
  number: same,
  integer: restoreInteger,
  timestamp: restoreInstant,
};
