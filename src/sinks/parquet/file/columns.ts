import { createHash } from 'node:crypto';
import type { Kind, Value } from '../../../model/columns.ts';
import { widen } from '../../../model/evolution.ts';
import { toIso } from '../../../model/instant.ts';
import { stringifyJson } from '../../../model/json.ts';
import { BOOKKEEPING, SOURCE, type Stream } from '../../../model/streams.ts';
import { ShapeChanged } from '../../sink.ts';
import type { FileColumn } from '../format/index.ts';

/** One row of a file: values in the order of its columns, JSON as text. */
export type LakeRow = Value[];

/** What every row of every file has. */
const ALWAYS: ReadonlySet<string> = new Set([
  'event',
  'timestamp',
  'event_id',
  ...BOOKKEEPING.filter(({ nullable }) => !nullable).map(({ name }) => name),
]);

/** The columns of a stream's files, in the order of its table. */
export const columnsOf = ({ columns }: Stream): FileColumn[] =>
  [SOURCE, ...columns, ...BOOKKEEPING.filter((column) => column !== SOURCE)].map(({ name, kind }) => ({
    name,
    kind,
    nullable: !ALWAYS.has(name),
  }));

/**
 * The columns of a file once rows of the stream are in it: of each the kind that holds both. A column that only the file knows (the
 * state was lost, or the field comes no more) stays, behind the others.
 */
export function widestColumns(stream: Stream, present: readonly FileColumn[]): FileColumn[] {
  const found = new Map(present.map((column) => [column.name, column]));
  const columns = columnsOf(stream).map((column) => {
    const held = found.get(column.name);
    found.delete(column.name);
    return held ? { ...column, kind: widen(held.kind, column.kind) } : column;
  });
  return [...columns, ...found.values()];
}

/** The same, where rows of the stream are about to be written: what the file holds beyond the stream's kinds must be learnt first. */
export function unitedColumns(stream: Stream, present: readonly FileColumn[]): FileColumn[] {
  const columns = widestColumns(stream, present);
  const wider = stream.columns.flatMap(({ name, kind }): Array<[string, Kind]> => {
    const held = columns.find((column) => column.name === name)?.kind ?? kind;
    return held === kind ? [] : [[name, held]];
  });
  if (wider.length > 0) throw new ShapeChanged(`the lake's ${stream.name}`, Object.fromEntries(wider));
  return columns;
}

/** Brings rows of a file into the columns of another: new ones are null, and what must hold more does. */
export function createReshape(from: readonly FileColumn[], to: readonly FileColumn[]): (row: LakeRow) => LakeRow {
  const places = to.map(({ name, kind }) => {
    const at = from.findIndex((column) => column.name === name);
    return { at, carry: at < 0 ? undefined : carrier(from[at]?.kind ?? kind, kind) };
  });
  const isSame = from.length === to.length && places.every(({ at, carry }, i) => at === i && !carry);
  if (isSame) return (row) => row;
  return (row) =>
    places.map(({ at, carry }) => {
      const value = at < 0 ? null : (row[at] ?? null);
      return carry && value !== null ? carry(value) : value;
    });
}

/** How a value is carried into a wider kind without loss, as the warehouse does it; undefined where nothing is to be done. */
function carrier(from: Kind, to: Kind): ((value: Value) => Value) | undefined {
  if (from === to || (from === 'integer' && to === 'number')) return undefined;
  const asText = (value: Value): string => (from === 'timestamp' ? microIso(value as number) : String(value));
  if (to === 'text') return asText;
  // JSON travels as text: a number is its own JSON, a text needs its quotes.
  const isPlain = from === 'integer' || from === 'number' || from === 'boolean';
  return to === 'json' ? (value) => (isPlain ? String(value) : stringifyJson(asText(value))) : undefined;
}

function microIso(instant: number): string {
  const iso = toIso(instant);
  return iso.length === 24 ? `${iso.slice(0, -1)}000Z` : iso;
}

/** Told to the codec, this lets JSON through as the text it is stored as: parsing it only to write it again would be the larger part of a rewrite. */
export const jsonAsText = (columns: readonly FileColumn[]): FileColumn[] =>
  columns.map((column) => (column.kind === 'json' ? { ...column, kind: 'text', isUnordered: true } : column));

/** A short name for a set of columns, for people who wonder which files are of which. */
export const schemaVersion = (columns: readonly FileColumn[]): string =>
  createHash('sha256')
    .update(columns.map(({ name, kind }) => `${name} ${kind}`).join())
    .digest('hex')
    .slice(0, 12);
