import type { Kind } from '../../../model/columns.ts';
import { PHYSICAL, type Physical } from './stored.ts';
import { bool, i32, list, struct, type Thrift, text } from './thrift.ts';
import type { FileColumn } from './types.ts';

/** Parquet's numbers for its physical types. */
export const TYPE: Readonly<Record<Physical, number>> = { bit: 0, int64: 2, text: 6 };

const REQUIRED = 0;
const OPTIONAL = 1;
/** The older way to say what a column means, which many readers still look at first. */
const UTF8 = 0;
const TIMESTAMP_MICROS = 10;
const JSON_TEXT = 19;

const NOTHING = struct({});
const STRING_TYPE = struct({ 1: NOTHING });
const JSON_TYPE = struct({ 12: NOTHING });
const UTC_MICROS = struct({ 8: struct({ 1: bool(true), 2: struct({ 2: NOTHING }) }) });

const MEANING: Readonly<Record<Kind, { converted?: number; logical?: Thrift }>> = {
  text: { converted: UTF8, logical: STRING_TYPE },
  number: { converted: UTF8, logical: STRING_TYPE },
  json: { converted: JSON_TEXT, logical: JSON_TYPE },
  timestamp: { converted: TIMESTAMP_MICROS, logical: UTC_MICROS },
  integer: {},
  boolean: {},
};

/** The columns as Parquet's schema: a root without a type, then each of them. */
export function encodeSchema(columns: readonly FileColumn[]): Thrift {
  return list([struct({ 4: text('root'), 5: i32(columns.length) }), ...columns.map(encodeColumn)]);
}

function encodeColumn({ name, kind, nullable }: FileColumn): Thrift {
  const { converted, logical } = MEANING[kind];
  return struct({
    1: i32(TYPE[PHYSICAL[kind]]),
    3: i32(nullable ? OPTIONAL : REQUIRED),
    4: text(name),
    6: converted === undefined ? undefined : i32(converted),
    10: logical,
  });
}

/**
 * Whether groups of one file can stand in a file with these columns as they are. A column more, another kind, even another place
 * among the others, and they cannot: then their rows must be read and written anew.
 */
export function fitsSchema(file: { columns: readonly FileColumn[] }, columns: readonly FileColumn[]): boolean {
  return (
    file.columns.length === columns.length &&
    file.columns.every(({ name, kind, nullable }, i) => {
      const other = columns[i];
      return name === other?.name && kind === other.kind && nullable === other.nullable;
    })
  );
}
