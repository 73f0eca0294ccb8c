import type { Kind, Value } from '../../../model/columns.ts';

/**
 * The words of the Parquet codec. A file is MAGIC, row groups, and a footer that says where everything stands.
 * Inside a group all places are counted from its first byte: that is what makes a group movable.
 */
export type Compression = 'zstd' | 'snappy' | 'gzip';

export interface FileColumn {
  name: string;
  kind: Kind;
  nullable: boolean;
  /** Where a table format knows columns by number: one for each leaf (see `leaves.ts`). */
  fieldIds?: readonly number[];
  /** Its values have no order that helps a reader: none is written. */
  isUnordered?: true;
}

/** An end of what a column holds within a group, in the bytes that Parquet compares by. */
export interface Bound {
  bytes: Uint8Array;
  /** False where a long text was cut: then the bound lies beyond the value and is none itself. */
  isExact: boolean;
}

/** One leaf (see `leaves.ts`) of one group, as the footer tells of it. */
export interface Chunk {
  /** From the group's first byte. */
  at: number;
  length: number;
  /** What the pages and their headers would take without compression. */
  unpacked: number;
  /** From the group's first byte; undefined where the values stand as they are. */
  dictionaryAt: number | undefined;
  dataAt: number;
  compression: Compression;
  values: number;
  nulls: number;
  /** Both or none. */
  min: Bound | undefined;
  max: Bound | undefined;
}

/** A group that stands in a file, or will: everything the footer needs to know of it. */
export interface PlacedGroup {
  rows: number;
  length: number;
  /** In the order of the leaves. */
  chunks: readonly Chunk[];
}

/** A group on its way into a file. Once its bytes are written, keep only what a PlacedGroup holds. */
export interface EncodedGroup extends PlacedGroup {
  bytes: Uint8Array;
}

/** Where the values of a column lie. Of a long text these are the ends of a range that holds all values, not values themselves. */
export interface Range {
  min: Value;
  max: Value;
}

/** A group as it was found in a file: its bytes can be copied into another file of the same columns as they are. */
export interface StoredGroup extends PlacedGroup {
  /** Of the file. */
  start: number;
  end: number;
  /** By name: columns of text, integers and instants that hold a value at all. */
  ranges: ReadonlyMap<string, Range>;
}

export interface ParquetFile {
  /** Where the footer begins; it ends with the file. */
  footerAt: number;
  columns: readonly FileColumn[];
  rows: number;
  metadata: Record<string, string>;
  groups: readonly StoredGroup[];
}

/** Bytes that can be read from any place: a file, or an object in S3. */
export interface ByteSource {
  /** For messages: a path or an address. */
  readonly name?: string;
  readonly size: number;
  read(start: number, end: number): Promise<Uint8Array>;
}

export const MAGIC: Uint8Array = Buffer.from('PAR1', 'latin1');
