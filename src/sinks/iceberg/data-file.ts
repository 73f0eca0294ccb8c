import type { Value } from '../../model/columns.ts';
import { RetryLater } from '../../model/errors.ts';
import { type LakeRow, META, openParquet } from '../files/partition-file.ts';
import { whileStaged } from '../files/store/store.ts';
import { type Piece, writeFile } from '../files/write-file.ts';
import { compareText, type EncodedGroup, type FileColumn, leavesOf } from '../parquet/format/index.ts';
import type { NewFile } from './change-table.ts';
import type { ColumnMetrics, DataFile } from './format/manifest.ts';
import { type Draft, locationOf, newDataPath, pathOf, stageFile, type Table, type Warehouse } from './warehouse.ts';

/** The metadata key that lists a file's JSON columns: they are text in Parquet, because Iceberg has no JSON type. */
const JSON_COLUMNS = 'tributary.json';
const COMPRESSION = 'zstd';

/** Writes a data file, which readers see once a snapshot lists it. Returns none without rows. */
export async function writeDataFile(
  draft: Draft,
  { table, source, day }: { table: Table; source: string; day: number | undefined },
  pieces: Iterable<Piece> | AsyncIterable<Piece>,
): Promise<NewFile[]> {
  const path = newDataPath(table, source, day);
  return whileStaged(await stageFile(draft, path), async (staged) => {
    const { columns } = table;
    const json = columns.filter(({ kind }) => kind === 'json').map(({ name }) => name);
    const metadata = { [META.source]: source, [META.stream]: table.design.name, [JSON_COLUMNS]: json.join() };
    const file = await writeFile(staged, { columns, compression: COMPRESSION, metadata }, pieces);
    if (!file) return [];
    await staged.publish(undefined);
    const made: DataFile = {
      path: locationOf(draft.warehouse, path),
      day,
      rows: file.rows,
      bytes: file.bytes,
      columns: metricsOf(columns, file.groups),
      splitOffsets: file.groups.map(({ start }) => start),
      sortOrderId: table.metadata['default-sort-order-id'],
    };
    return [{ source, file: made }];
  });
}

export const compareValues = (a: Value, b: Value): number =>
  typeof a === 'string' && typeof b === 'string' ? compareText(a, b) : Number(a) - Number(b);

export function orderOf({ columns, design }: Table): (a: LakeRow, b: LakeRow) => number {
  const index = columns.findIndex(({ name }) => name === design.sortedBy);
  return (a, b) => compareValues(a[index] ?? null, b[index] ?? null);
}

export const openDataFile = (warehouse: Warehouse, data: DataFile) =>
  openParquet(warehouse.store, pathOf(warehouse, data.path), (file) => {
    const json = new Set(file.metadata[JSON_COLUMNS]?.split(','));
    const columns = file.columns.map((column) =>
      json.has(column.name) ? { ...column, kind: 'json' as const } : column,
    );
    return { ...file, columns };
  });

export const missingDataFile = (location: string): RetryLater =>
  new RetryLater(`${location} belongs to an Iceberg table and is not there`, {
    kept: 'the catalog as it is',
    next: 'tributary sync --recount finds what was lost and reads it again; or restore the file from a backup',
  });

/** Decodes a bound. Bounds of all other types compare bytewise. */
const BOUND: Readonly<Record<string, (bytes: Buffer) => number | bigint>> = {
  integer: (bytes) => bytes.readBigInt64LE(),
  timestamp: (bytes) => bytes.readBigInt64LE(),
  double: (bytes) => bytes.readDoubleLE(),
};

function compareBounds(type: string, a: Buffer, b: Buffer): number {
  const read = BOUND[type];
  return read ? Number(read(a) > read(b)) - Number(read(a) < read(b)) : Buffer.compare(a, b);
}

/** Column statistics of the whole file, from those of its row groups. Iceberg encodes bounds as Parquet does. */
function metricsOf(columns: readonly FileColumn[], groups: readonly EncodedGroup[]): Map<number, ColumnMetrics> {
  const metrics = new Map<number, ColumnMetrics>();
  for (const [i, { fieldId, type }] of leavesOf(columns).entries()) {
    if (fieldId === undefined) throw new Error('a column of an Iceberg table has no field id');
    const chunks = groups.flatMap(({ chunks }) => chunks[i] ?? []);
    const sum = (pick: (chunk: (typeof chunks)[number]) => number): number =>
      chunks.reduce((all, chunk) => all + pick(chunk), 0);
    const filled = chunks.filter(({ values, nulls }) => values > nulls);
    const bounds = filled.flatMap(({ min, max }) => (min && max ? [[min, max]] : []));
    const isBounded = bounds.length === filled.length;
    const inOrder = bounds
      .flat()
      .map(({ bytes }) => Buffer.from(bytes))
      .sort((a, b) => compareBounds(type, a, b));
    metrics.set(fieldId, {
      bytes: sum(({ length }) => length),
      values: sum(({ values }) => values),
      nulls: sum(({ nulls }) => nulls),
      lower: isBounded ? inOrder.at(0) : undefined,
      upper: isBounded ? inOrder.at(-1) : undefined,
    });
  }
  return metrics;
}
