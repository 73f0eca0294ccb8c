import { type Leaf, type LeafType, leavesOf } from './leaves.ts';
import { bool, i32, list, struct, type Thrift, text } from './thrift.ts';
import type { FileColumn } from './types.ts';

const BOOLEAN = 0;
const INT64 = 2;
const DOUBLE = 5;
const BYTE_ARRAY = 6;

/** Parquet's numbers for its physical types. */
export const PHYSICAL: Readonly<Record<LeafType, number>> = {
  text: BYTE_ARRAY,
  json: BYTE_ARRAY,
  integer: INT64,
  timestamp: INT64,
  double: DOUBLE,
  boolean: BOOLEAN,
};

const REQUIRED = 0;
const OPTIONAL = 1;

const NOTHING = struct({});

/** What the bytes mean, said twice: many readers look only for the older word. Integers, doubles and booleans mean themselves. */
const MEANING: Partial<Record<LeafType, { converted: number; logical: Thrift }>> = {
  text: { converted: 0, logical: struct({ 1: NOTHING }) },
  json: { converted: 19, logical: struct({ 12: NOTHING }) },
  // In UTC, and in microseconds.
  timestamp: { converted: 10, logical: struct({ 8: struct({ 1: bool(true), 2: struct({ 2: NOTHING }) }) }) },
};

/** The leaves as Parquet's schema, below a root. */
export function encodeSchema(columns: readonly FileColumn[]): Thrift {
  const leaves = leavesOf(columns);
  return list([struct({ 4: text('root'), 5: i32(leaves.length) }), ...leaves.map(encodeLeaf)]);
}

function encodeLeaf({ name, type, nullable, fieldId }: Leaf): Thrift {
  const meaning = MEANING[type];
  return struct({
    1: i32(PHYSICAL[type]),
    3: i32(nullable ? OPTIONAL : REQUIRED),
    4: text(name),
    6: meaning && i32(meaning.converted),
    9: fieldId === undefined ? undefined : i32(fieldId),
    10: meaning?.logical,
  });
}

/**
 * Whether groups of one file can stand in a file with these columns as they are. A column more, another kind, even another place
 * among the others, and they cannot: then their rows must be read and written anew.
 */
export function fitsSchema(file: { columns: readonly FileColumn[] }, columns: readonly FileColumn[]): boolean {
  const there = leavesOf(file.columns);
  const wanted = leavesOf(columns);
  return (
    there.length === wanted.length &&
    there.every(({ name, type, nullable }, i) => {
      const leaf = wanted[i];
      return name === leaf?.name && type === leaf.type && nullable === leaf.nullable;
    })
  );
}
