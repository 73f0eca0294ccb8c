import { storableText } from '../../cursor/database/sql.ts';
import { RUN_ID } from '../../cursor/runs.ts';
import { ConfigError, StopStream } from '../../model/errors.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { DAY_MS } from '../../model/window.ts';
import { groupBy } from '../files/group-by.ts';
import { idsIn, type LakeRow, type PartitionFile } from '../files/partition-file.ts';
import { whileOpen } from '../files/store/store.ts';
import { type Edits, editedPieces } from '../files/write-file.ts';
import { type AnyFile, type FileColumn, readAny, type StoredGroup, UnreadableFile } from '../parquet/format/index.ts';
import type { NewFile } from './change-table.ts';
import { missingDataFile, openDataFile, writeDataFile } from './data-file.ts';
import type { DataFile } from './format/manifest.ts';
import type { Snapshot } from './format/metadata.ts';
import {
  type Draft,
  filesOf,
  OWN_SPEC,
  pathOf,
  type Table,
  type TableFile,
  type Warehouse,
  writtenSources,
} from './warehouse.ts';

/** A foreign file. A row in it is ours if one of our runs wrote it (`_run_id`) and no other file has it. */
export type ForeignFile = ReturnType<typeof foreignFileOf>;

interface PlacedRow {
  group: number;
  n: number;
  id: string;
  source: string;
  isRun: boolean;
  at: Instant;
}

const IS_RUN = new RegExp(RUN_ID);
const UNREADABLE = [UnreadableFile, StopStream, ConfigError, RangeError];

/** Opens the foreign files among these. Files of one day are examined together: a row that is in two of them counts once. */
export async function openForeignFiles(table: Table, files: readonly TableFile[]): Promise<ForeignFile[]> {
  const foreign = files
    .filter(({ source }) => source === undefined)
    .sort((a, b) => Number(a.sequence ?? 0) - Number(b.sequence ?? 0) || (a.file.path < b.file.path ? -1 : 1));
  const sources = foreign.length === 0 ? new Set<string>() : await writtenSources(table);
  const found: ForeignFile[] = [];
  for (const entries of groupBy(foreign, ({ file }) => file.day).values()) {
    const read = await Promise.all(entries.map((entry) => readForeignFile(table, entry)));
    const rows = read.flatMap((one) => one.rows).filter(({ source }) => sources.has(source));
    const seen = await ownIds(table, rows);
    for (const one of read) found.push(foreignFileOf(table, one, seen));
  }
  return found;
}

type ReadForeignFile = Awaited<ReturnType<typeof readForeignFile>>;

async function readForeignFile({ warehouse, design }: Table, entry: TableFile) {
  const wanted = ['_source', design.key[1], ...(design.isByDay ? ['_run_id', 'timestamp'] : [])];
  const columns = wanted.map(
    (name): FileColumn => ({ name, kind: name === 'timestamp' ? 'timestamp' : 'text', nullable: true }),
  );
  try {
    return await withFile(warehouse, entry.file, async (file) => {
      const rows: PlacedRow[] = [];
      for (const group of file.groups.keys()) {
        for (const [n, [source, id, run, at]] of (await file.read(group, columns)).entries()) {
          const isRun = design.isByDay ? IS_RUN.test(String(run)) && at !== null : true;
          rows.push({ group, n, id: String(id), source: String(source), isRun, at: Number(at ?? 0) });
        }
      }
      return { entry, file, rows };
    });
  } catch (error) {
    // Recovery: a file that is damaged, gone or out of reach counts as unreadable, and is reported.
    if (!UNREADABLE.some((type) => error instanceof type)) throw error;
    return { entry, file: undefined, rows: [] };
  }
}

async function withFile<T>(warehouse: Warehouse, file: DataFile, work: (file: AnyFile) => Promise<T>): Promise<T> {
  const open = await warehouse.store.open(pathOf(warehouse, file.path));
  if (!open) throw missingDataFile(file.path);
  return whileOpen(open, async () => work(await readAny(open)));
}

/** By source: the ids in our own files, on the days of the foreign rows. */
async function ownIds(table: Table, rows: readonly PlacedRow[]): Promise<Map<string, Set<string>>> {
  const days = [...new Set(rows.map(({ at }) => Math.floor(at / DAY_MS)))].map((day) => ({ first: day, last: day }));
  const seen = new Map(rows.map(({ source }) => [source, new Set<string>()]));
  if (seen.size === 0) return seen;
  for (const { file, source } of await filesOf(table, table.design.isByDay ? { days } : {})) {
    const ids = source === undefined ? undefined : seen.get(source);
    // A file that somebody deleted has no ids; `attestTable` accounts for it.
    const present = ids && (await openDataFile(table.warehouse, file));
    if (!present) continue;
    for (const id of await whileOpen(present, () => idsIn(present, table.design.key[1]))) ids.add(id);
  }
  return seen;
}

function foreignFileOf(table: Table, { entry, file, rows }: ReadForeignFile, seen: Map<string, Set<string>>) {
  const ours = new Map<string, PlacedRow[]>();
  const theirs: Array<{ source: string | undefined; at: Instant | undefined }> = [];
  for (const row of rows) {
    const { source, id, at, isRun } = row;
    const ids = seen.get(source);
    if (!ids || !isRun || ids.has(id)) {
      theirs.push({ source: ids ? source : undefined, at });
      continue;
    }
    ids.add(id);
    ours.set(source, [...(ours.get(source) ?? []), row]);
  }
  if (!file) for (let i = 0; i < entry.file.rows; i++) theirs.push({ source: undefined, at: undefined });
  const adding = table.metadata.snapshots.find((one) => String(one['snapshot-id']) === String(entry.snapshotId));
  const operation = adding?.summary.operation;
  const isReplace = operation === undefined || operation === 'replace';
  return {
    entry,
    /** Who wrote the file and when, in words. */
    by: describeWriter(entry.file, adding, file?.writer),
    /** The file has only rows of ours in our partition spec, and its writer declares that no row changed. */
    isCompaction: isReplace && theirs.length === 0 && entry.manifest.specId === OWN_SPEC,
    sources: [...ours.keys()],
    /** Our rows of a source, as a file. */
    of(source: string, day?: number): PartitionFile {
      const all = ours.get(source) ?? [];
      const own = all.filter(({ at }) => day === undefined || Math.floor(at / DAY_MS) === day);
      return slice(table, entry.file, file, own);
    },
    times: (source: string) => (ours.get(source) ?? []).map(({ at }) => at),
    /** Whether any row, whoever wrote it, has this text in a column. True for an unreadable file. */
    mentions: async (column: string, id: string) => !file || mentions(table.warehouse, entry.file, column, id),
    /** Rows that are not ours: of a source, or of none that we know. Rows of an unreadable file have no time. */
    theirs,
  };
}

const mentions = (warehouse: Warehouse, data: DataFile, name: string, id: string): Promise<boolean> =>
  withFile(warehouse, data, async (file) => {
    for (const group of file.groups.keys()) {
      const values = await file.read(group, [{ name, kind: 'text', nullable: true }]);
      if (values.some(([value]) => typeof value === 'string' && storableText(value) === id)) return true;
    }
    return false;
  });

/** Some rows of a foreign file, as a file. Each read opens it, so there is nothing to close. */
function slice(table: Table, data: DataFile, file: AnyFile | undefined, rows: readonly PlacedRow[]): PartitionFile {
  const inOrder = [...rows].sort((a, b) => a.at - b.at);
  const groups = groupBy(inOrder, ({ group }) => group);
  // Nullable, because nothing is known of foreign values: so no row group is copied as bytes.
  const columns = table.columns
    .filter(({ name }) => file?.names.has(name))
    .map(({ name, kind }): FileColumn => ({ name, kind, nullable: true }));
  const stored = [...groups].map(([group, placed]): StoredGroup => {
    const range = { min: placed[0]?.at ?? 0, max: placed.at(-1)?.at ?? 0 };
    return {
      rows: placed.length,
      length: 0,
      chunks: [],
      start: group,
      end: group,
      ranges: new Map([['timestamp', range]]),
    };
  });
  return {
    path: data.path,
    identity: data.path,
    size: data.bytes,
    file: { footerAt: 0, columns, rows: rows.length, metadata: {}, groups: stored },
    async rows({ start }, names) {
      const wanted = names?.map((name) => columns.find((column) => column.name === name)) ?? columns;
      const all = await withFile(table.warehouse, data, (open) => open.read(start, wanted as FileColumn[]));
      return (groups.get(start) ?? []).map(({ n }) => all[n] as LakeRow);
    },
    bytes() {
      throw new Error('row groups of a foreign file are not copied');
    },
    async close() {},
  };
}

function describeWriter({ path }: DataFile, adding: Snapshot | undefined, createdBy: string | undefined): string {
  const { summary = {}, 'timestamp-ms': ms, 'snapshot-id': id } = adding ?? {};
  const engine = [summary['engine-name'], summary['engine-version']].filter(Boolean).join(' ');
  const spark = summary['spark.app.id'] && `Spark ${summary['spark.app.id']}`;
  const pyiceberg = summary['pyiceberg-version'] && `pyiceberg ${summary['pyiceberg-version']}`;
  const writer = engine || spark || pyiceberg || createdBy || 'another program';
  const at = ms === undefined ? '' : ` at ${toIso(ms).slice(0, 16).replace('T', ' ')}`;
  const snapshot = id === undefined ? '' : ` in snapshot ${id} (${summary.operation})`;
  return `${path.slice(path.lastIndexOf('/') + 1)}, written by ${writer}${at}${snapshot}`;
}

/** Rewrites our rows of a foreign file into files of ours, by source and day; with the edits of one source. */
export async function replaceForeignFile(
  draft: Draft,
  table: Table,
  foreign: ForeignFile,
  edited?: { source: string; edits?: Edits | undefined },
): Promise<NewFile[]> {
  const made: NewFile[] = [];
  const { day: own } = foreign.entry.file;
  for (const source of foreign.sources) {
    const days = table.design.isByDay
      ? own === undefined
        ? new Set(foreign.times(source).map((at) => Math.floor(at / DAY_MS)))
        : [own]
      : [undefined];
    for (const day of days) {
      const edits = edited?.source === source ? edited.edits : undefined;
      const pieces = editedPieces(foreign.of(source, day), table.columns, edits);
      // Each row group is sorted, but the file as a whole is not.
      for (const { file } of await writeDataFile(draft, { table, source, day }, pieces))
        made.push({ source, file: { ...file, sortOrderId: undefined } });
    }
  }
  return made;
}
