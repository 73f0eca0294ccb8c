import { setImmediate as pause } from 'node:timers/promises';
import type { Value } from '../../../model/coerce.ts';
import type { Kind } from '../../../model/columns.ts';
import { encodeFooter } from './footer.ts';
import { openGroup, parseMetadata } from './hyparquet.ts';
import { restoreInstant, restoreInteger, restoreNumber } from './stored.ts';
import { torn } from './torn.ts';
import { type ByteSource, MAGIC, type ParquetFile, type StoredGroup } from './types.ts';

/** Leases are renewed and requests are answered between columns. */
const LONGEST_BREATH_MS = 25;

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
  const read = async (start: number, end: number): Promise<Uint8Array> =>
    whole?.subarray(start - MAGIC.length, end - MAGIC.length) ?? source.read(start + shift, end + shift);

  const rows = Array.from({ length: group.rows }, () => new Array<Value>(wanted.length).fill(null));
  let began = performance.now();
  try {
    const readColumn = await openGroup(parseMetadata(encodeFooter(file.columns, [group], {})), read);
    for (const [at, name] of wanted.entries()) {
      const restore = RESTORE[kinds.get(name) as Kind];
      const values = await readColumn(name);
      if (values.length !== group.rows) throw new RangeError(`column ${name} has ${values.length} values`);
      for (let row = 0; row < group.rows; row++) {
        const value = values[row] ?? null;
        if (value !== null) (rows[row] as Value[])[at] = restore(value as never);
      }
      if (performance.now() - began < LONGEST_BREATH_MS) continue;
      await pause();
      began = performance.now();
    }
  } catch (error) {
    // Recovery: none; what is said of the file tells the person how to get its rows back.
    throw torn(source, `a group of ${group.rows} rows at byte ${group.start} cannot be read`, error);
  }
  return rows;
}

const same = (value: Value): Value => value;

const RESTORE: Readonly<Record<Kind, (value: never) => Value>> = {
  text: same,
  json: same,
  boolean: same,
  integer: restoreInteger,
  timestamp: restoreInstant,
  number: restoreNumber,
};
