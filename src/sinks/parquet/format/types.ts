import type { Kind, Value } from '../../../model/columns.ts';
import type { Compression } from './compression.ts';

/** A file is MAGIC, row groups and a footer. Offsets in a row group are relative to its start, so that it can be moved. */
export interface FileColumn {
  name: string;
  /** JSON values are text: parsing them only to write them again would be most of the cost of a rewrite. */
  kind: Kind;
  nullable: boolean;
  /** Iceberg's field ids, one for each leaf (see `Leaf`). */
  fieldIds?: readonly number[];
}

/** A bound of a column within a row group, in Parquet's plain encoding. */
export interface Bound {
  bytes: Uint8Array;
  /** False if a long text was cut: then the bound is beyond the value. */
  isExact: boolean;
}

/** A column chunk: one leaf (see `Leaf`) of one row group, as the footer describes it. */
export interface Chunk {
  /** Relative to the row group's first byte. */
  at: number;
  length: number;
  /** The size of the pages and their headers without compression. */
  unpacked: number;
  /** Relative to the row group's first byte; undefined without a dictionary. */
  dictionaryAt: number | undefined;
  dataAt: number;
  compression: Compression;
  values: number;
  nulls: number;
  /** Both or none. */
  min: Bound | undefined;
  max: Bound | undefined;
}

/** A row group as the footer describes it, without its position in the file. */
export interface EncodedGroup {
  rows: number;
  length: number;
  /** In the order of the leaves. */
  chunks: readonly Chunk[];
}

/** The range of a column's values. Bounds of long text include all values but need not be values themselves. */
export interface Range {
  min: Value;
  max: Value;
}

/** A row group of an existing file. Its bytes can be copied into another file with the same columns. */
export interface StoredGroup extends EncodedGroup {
  start: number;
  end: number;
  /** By name: columns of text, integers and instants with at least one value. */
  ranges: ReadonlyMap<string, Range>;
}

export interface ParquetFile {
  /** The offset of the footer, which extends to the end of the file. */
  footerAt: number;
  columns: readonly FileColumn[];
  rows: number;
  metadata: Record<string, string>;
  groups: readonly StoredGroup[];
}

/** Random access to bytes: a file, or an object in S3. */
export interface ByteSource {
  readonly name: string;
  readonly size: number;
  read(start: number, end: number): Promise<Uint8Array>;
}

export const MAGIC: Uint8Array = Buffer.from('PAR1', 'latin1');

/**
 * A leaf is a column of Parquet. Each of our columns is one leaf, except numbers, which are two.
 *
 * A JSON number is a double or, from 2^53 on, an exact integer of any length. No Parquet type holds both: DOUBLE rounds
 * 9007199254740993, and DECIMAL has no room for 0.0033333333333333335 beside it. Text would be exact, but every sum in a BI
 * tool would break the day a column of integers gets its first fraction. So a number is stored as a DOUBLE, and if that is not
 * exact, `_exact_<name>` has all digits. Columns of the service never begin with an underscore.
 */
export interface Leaf {
  name: string;
  type: LeafType;
  nullable: boolean;
  fieldId?: number | undefined;
  /** The index of the file's column that the leaf belongs to. */
  column: number;
  /** The stored form of a value; null for no value, undefined for a value that is not of this column's kind. */
  store: (value: Value) => Stored | null | undefined;
}

export type LeafType = 'text' | 'json' | 'integer' | 'timestamp' | 'double' | 'boolean';

export type Stored = string | number | bigint | boolean;

export const exactName = (name: string): string => `_exact_${name}`;

export function leavesOf(columns: readonly FileColumn[]): Leaf[] {
  return columns.flatMap(({ name, kind, nullable, fieldIds }, column): Leaf[] => {
    const [fieldId, exactId] = fieldIds ?? [];
    if (kind !== 'number') return [{ name, type: kind, nullable, fieldId, column, store: STORE[kind] }];
    return [
      // An integer of four hundred digits exceeds every double.
      { name, type: 'double', nullable: true, fieldId, column, store: storeDouble },
      { name: exactName(name), type: 'text', nullable: true, fieldId: exactId, column, store: storeDigits },
    ];
  });
}

const storeText = (value: Value): string | undefined => (typeof value === 'string' ? value : undefined);

const STORE: Readonly<Record<Exclude<Kind, 'number'>, Leaf['store']>> = {
  text: storeText,
  json: storeText,
  integer: (value) => (isInt64(value) ? value : undefined),
  boolean: (value) => (typeof value === 'boolean' ? value : undefined),
  timestamp: (value) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined),
};

const isInt64 = (value: Value): value is number | bigint =>
  typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value);

function storeDouble(value: Value): number | null | undefined {
  // Adding zero turns -0 into 0, as Postgres and JSON do; a dictionary could not distinguish them.
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : undefined;
  if (typeof value !== 'bigint') return undefined;
  const nearest = Number(value);
  return Number.isFinite(nearest) ? nearest : null;
}

const storeDigits = (value: Value): string | null => (typeof value === 'bigint' ? String(value) : null);

/** The data of one leaf in a row group: a level per row, 1 with a value and 0 without, and the values without gaps. */
export interface StoredLeaf {
  levels: Uint8Array;
  values: Stored[];
}

export function storeLeaf({ name, type, column, nullable, store }: Leaf, rows: ReadonlyArray<readonly Value[]>) {
  const levels = new Uint8Array(rows.length);
  const values: Stored[] = [];
  for (let row = 0; row < rows.length; row++) {
    const value = rows[row]?.[column] ?? null;
    const stored = value === null ? null : store(value);
    if (stored === null) continue;
    // The value itself is not in the message: it may be personal data.
    if (stored === undefined) throw new TypeError(`column ${name} (${type}) cannot hold this ${typeof value}`);
    levels[row] = 1;
    values.push(stored);
  }
  if (!nullable && values.length < rows.length) throw new TypeError(`column ${name} must have a value in every row`);
  return { levels, values };
}

/** A number if exact, else a bigint. */
export function restoreInteger(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** A double holds microseconds up to 2^43 ms from 1970; instants beyond are whole milliseconds. */
const EXACT_MICROS = 2n ** 43n * 1000n;

export const restoreInstant = (micros: bigint): number =>
  micros < EXACT_MICROS && micros > -EXACT_MICROS ? Number(micros) / 1000 : Number(micros / 1000n);
