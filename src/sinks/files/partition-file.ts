import { createHash } from 'node:crypto';
import type { Kind, Value } from '../../model/columns.ts';
import { RetryLater } from '../../model/errors.ts';
import { widen } from '../../model/evolution.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { stringifyJson } from '../../model/json.ts';
import type { Stream, SyncName } from '../../model/streams.ts';
import {
  type FileColumn,
  type ParquetFile,
  type ReadableFile,
  readFooter,
  readGroup,
  type StoredGroup,
} from '../parquet/format/index.ts';
import { ShapeChanged } from '../sink.ts';
import { streamColumns } from '../table-columns.ts';
import type { Store } from './store/store.ts';

/** Metadata keys of our files. We only touch a file whose `source` is the one we write. */
export const META = {
  source: 'tributary.source',
  stream: 'tributary.stream',
  schema: 'tributary.schema',
  run: 'tributary.run',
  window: 'tributary.window',
  /** Whether the file still contains its previous version: see `layout.ts`. */
  before: 'tributary.before',
} as const;

export interface PartitionFile {
  readonly path: string;
  readonly identity: string;
  readonly file: ParquetFile;
  /** The rows of a row group, with all columns or the named ones in that order. JSON is text. */
  rows(group: StoredGroup, names?: readonly string[]): Promise<LakeRow[]>;
  readonly size: number;
  bytes(range: { start: number; end: number }): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

const COPY_BYTES = 1024 * 1024;

export const openPartition = (store: Store, path: string, { source, stream }: { source: string; stream: SyncName }) =>
  openParquet(store, path, (file) => {
    const isOurs = file.metadata[META.source] === source && file.metadata[META.stream] === stream;
    if (!isOurs) throw notOurs(path, source);
    return file;
  });

/** Undefined if the file is gone. */
export async function openParquet(store: Store, path: string, accept: (file: ReadableFile) => ReadableFile) {
  const open = await store.open(path);
  if (!open) return undefined;
  try {
    const file = accept(await readFooter(open));
    const present: PartitionFile = {
      path,
      identity: open.identity,
      size: open.size,
      file,
      rows: (group, names) => readGroup(open, file, group, names),
      async *bytes({ start, end }) {
        for (let at = start; at < end; at += COPY_BYTES) yield await open.read(at, Math.min(end, at + COPY_BYTES));
      },
      close: () => open.close(),
    };
    return present;
  } catch (error) {
    await open.close();
    throw error;
  }
}

export function timesOf(group: StoredGroup): { oldest: Instant; newest: Instant } {
  const range = group.ranges.get('timestamp');
  if (typeof range?.min !== 'number' || typeof range.max !== 'number')
    throw new Error('a row group has no time bounds');
  return { oldest: range.min, newest: range.max };
}

export async function idsIn({ file, rows }: PartitionFile, column = 'event_id'): Promise<string[]> {
  const ids: string[] = [];
  for (const group of file.groups) for (const [id] of await rows(group, [column])) ids.push(String(id));
  return ids;
}

export interface Extent {
  rows: number;
  oldest: Instant | undefined;
  newest: Instant | undefined;
  /** The file still contains its previous version: see `layout.ts`. */
  holdsBefore: boolean;
}

export function extentOf({ groups, rows, metadata }: ParquetFile): Extent {
  const times = groups.map(timesOf);
  return {
    rows,
    holdsBefore: metadata[META.before] === 'yes',
    oldest: times.length === 0 ? undefined : Math.min(...times.map(({ oldest }) => oldest)),
    newest: times.length === 0 ? undefined : Math.max(...times.map(({ newest }) => newest)),
  };
}

const notOurs = (path: string, source: string): RetryLater =>
  new RetryLater(`${path} is in the lake and was not written by Tributary for source ${source}`, {
    where: { source },
    kept: 'the file as it is',
    next: 'move it out of the lake and run again, or run verify --repair, which removes it',
  });

/** One row of a file: values in the order of its columns, JSON as text. */
export type LakeRow = Value[];

export const columnsOf = (stream: Stream): FileColumn[] => streamColumns(stream).map(({ doc, ...column }) => column);

/** The stream's columns, widened to hold the file's values. Columns that only the file has (the state was lost) come last. */
export function widestColumns(stream: Stream, present: readonly FileColumn[]): FileColumn[] {
  const found = new Map(present.map((column) => [column.name, column]));
  const columns = columnsOf(stream).map((column) => {
    const held = found.get(column.name);
    found.delete(column.name);
    return held ? { ...column, kind: widen(held.kind, column.kind) } : column;
  });
  return [...columns, ...found.values()];
}

/** `widestColumns` for a write: throws if the file has wider kinds than the stream, which must be evolved first. */
export function unitedColumns(stream: Stream, present: readonly FileColumn[]): FileColumn[] {
  const columns = widestColumns(stream, present);
  const wider = stream.columns.flatMap(({ name, kind }): Array<[string, Kind]> => {
    const held = columns.find((column) => column.name === name)?.kind ?? kind;
    return held === kind ? [] : [[name, held]];
  });
  if (wider.length > 0) throw new ShapeChanged(`the lake's ${stream.name}`, Object.fromEntries(wider));
  return columns;
}

/** Converts rows to other columns: new columns are null, widened ones are converted. */
export function createReshape(from: readonly FileColumn[], to: readonly FileColumn[]): (row: LakeRow) => LakeRow {
  const mappings = to.map(({ name, kind }) => {
    const at = from.findIndex((column) => column.name === name);
    return { at, convert: at < 0 ? undefined : converter(from[at]?.kind ?? kind, kind) };
  });
  const isSame = from.length === to.length && mappings.every(({ at, convert }, i) => at === i && !convert);
  if (isSame) return (row) => row;
  return (row) =>
    mappings.map(({ at, convert }) => {
      const value = at < 0 ? null : (row[at] ?? null);
      return convert && value !== null ? convert(value) : value;
    });
}

/** Converts values to a wider kind without loss, as Postgres does; undefined if no conversion is needed. */
function converter(from: Kind, to: Kind): ((value: Value) => Value) | undefined {
  if (from === to || (from === 'integer' && to === 'number')) return undefined;
  const asText = (value: Value): string => (from === 'timestamp' ? microIso(value as number) : String(value));
  if (to === 'text') return asText;
  // JSON is text here: a number is its own JSON, a text needs quotes.
  const isPlain = from === 'integer' || from === 'number' || from === 'boolean';
  return to === 'json' ? (value) => (isPlain ? String(value) : stringifyJson(asText(value))) : undefined;
}

function microIso(instant: number): string {
  const iso = toIso(instant);
  return iso.length === 24 ? `${iso.slice(0, -1)}000Z` : iso;
}

/** A short digest of the columns, to tell which files have the same ones. */
export const schemaVersion = (columns: readonly FileColumn[]): string =>
  createHash('sha256')
    .update(columns.map(({ name, kind }) => `${name} ${kind}`).join())
    .digest('hex')
    .slice(0, 12);
