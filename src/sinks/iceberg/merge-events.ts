import type { Queryable } from '../../cursor/database/index.ts';
import type { Stream } from '../../model/streams.ts';
import { DAY_MS } from '../../model/window.ts';
import { addKeys, dropKeys, indexFile, keyOf } from '../files/event-index.ts';
import { allOf, type Files, homesOf, type Place, type WritableFiles } from '../files/merge.ts';
import { createMergeRule } from '../files/merge-row.ts';
import { type LakeRow, unitedColumns } from '../files/partition-file.ts';
import { whileOpen } from '../files/store/store.ts';
import { editsOf, extractMoved, type Incoming } from '../files/survey.ts';
import { editedPieces } from '../files/write-file.ts';
import { ShapeChanged } from '../sink.ts';
import { notThere, openIfThere, writeDataFile } from './data-file.ts';
import type { DataFile } from './format/manifest.ts';
import { openStrangers, replaceStranger, type Stranger } from './strangers.ts';
import {
  type Draft,
  daysOf,
  filesOf,
  type Table,
  type TableFile,
  timeIn,
  timesOf,
  type Warehouse,
} from './warehouse.ts';

interface TableTrack {
  warehouse: Warehouse;
  table: Table;
  /** Of the index. */
  track: number;
  source: string;
}

/** A file of the table; of another program where that joined files. */
interface Listing {
  entry: TableFile;
  stranger?: Stranger;
}

/** The files of a source in a table, for reading. Which day each event is in, the index says. */
export const tableFiles = (db: Queryable, of: TableTrack): Files<Listing> => ({
  columns: of.table.columns,
  async find(incoming, wholes) {
    const { warehouse, table, track, source } = of;
    const homes = await homesOf(db, track, incoming);
    const byDay = new Map([...homes].map(([partition, sought]) => [Math.floor(partition / 24), sought]));
    const days = [...[...byDay.keys()].map((day) => ({ first: day, last: day })), ...wholes.map(daysOf)];
    if (days.length === 0) return [];
    const listed = await filesOf(warehouse, table, { source, days });
    const soughtIn = (day: number | undefined): Map<string, Incoming> =>
      day === undefined ? new Map(incoming.map((one) => [one.id, one])) : (byDay.get(day) ?? new Map());
    const own = listed
      .filter((entry) => entry.source === source)
      .map((entry) => {
        const { oldest, newest } = timesOf(entry, timeIn(table));
        const sought = soughtIn(entry.file.day);
        const hits = [...sought.values()].filter(({ at }) => at >= oldest && at <= newest).length;
        const within = wholes.filter(({ start, end }) => start <= newest && end > oldest);
        const open = () => openIfThere(warehouse, entry.file);
        return { hits, place: { file: { entry }, sought, wholes: within, open } };
      });
    const strangers = (await openStrangers(warehouse, table, listed)).map((stranger): Place<Listing> => {
      const { entry, isCompaction } = stranger;
      const open = async () => stranger.of(source);
      // A file with rows that are not ours stays as it is until it is repaired.
      return {
        ...{ file: { entry, stranger }, sought: soughtIn(entry.file.day), wholes, open },
        isFixed: !isCompaction,
      };
    });
    // Most events come again with an unchanged time: the files that hold those times are read first, and usually suffice.
    return [...own.sort((a, b) => b.hits - a.hits).map(({ place }) => place), ...strangers];
  },
});

export interface NewFiles {
  added: DataFile[];
  removed: TableFile[];
}

interface Writing extends Omit<TableTrack, 'warehouse'> {
  draft: Draft;
  stream: Stream;
  beat(): Promise<void>;
}

/**
 * The same, to be changed. Files that hold a changed event are rewritten, with untouched row groups copied as they are; new events get a new
 * file for each day. The table does not refer to these files before the caller commits them.
 */
export function writableTable(tx: Queryable, of: Writing, { added, removed }: NewFiles): WritableFiles<Listing> {
  const { draft, table, track, stream, source, beat } = of;
  checkShape(stream, table);
  const rule = createMergeRule(stream, table.columns);
  return {
    ...tableFiles(tx, { ...of, warehouse: draft.warehouse }),
    async write({ works, news, gone, now }) {
      removed.push(...gone.map(({ entry }) => entry));
      const newRows: LakeRow[] = news.map(({ row }) => row);
      for (const { place, findings } of works) {
        const { entry, stranger } = place.file;
        const present = await place.open();
        if (!present) throw notThere(entry.file.path);
        await whileOpen(present, async () => {
          newRows.push(...(await extractMoved(present, findings, rule, table.columns)));
          const edits = editsOf(findings, rule, table.columns, now);
          const target = { table, source, day: entry.file.day, beat };
          removed.push(entry);
          added.push(
            ...(stranger
              ? await replaceStranger(draft, table, stranger, { source, edits })
              : await writeDataFile(draft, target, editedPieces(present, table.columns, edits))),
          );
        });
        const moved = allOf(findings.moved).map(({ key }) => key);
        if (moved.length > 0) await dropKeys(tx, track, partitionOf(entry.file.day ?? 0), moved);
      }
      const id = placeOf(table, 'event_id');
      for (const [day, rows] of rowsByDay(table, newRows)) {
        added.push(...(await writeDataFile(draft, { table, source, day, beat }, [{ rows }])));
        const keys = rows.map((row) => keyOf(String(row[id])));
        await addKeys(tx, track, partitionOf(day), keys);
      }
    },
  };
}

/** The index counts partitions in hours, as for the lake. */
const partitionOf = (day: number): number => day * 24;

const placeOf = ({ columns }: Table, wanted: string): number => columns.findIndex(({ name }) => name === wanted);

/** Rebuilds the index from the table, for a sink that was renamed or whose state was lost: which day each event is in. */
export async function indexTable(tx: Queryable, { warehouse, table, track, source }: TableTrack): Promise<void> {
  const files = await filesOf(warehouse, table, { source });
  for (const { file } of files.filter((entry) => entry.source === source)) {
    const present = await openIfThere(warehouse, file);
    if (present) await whileOpen(present, () => indexFile(tx, track, partitionOf(file.day ?? 0), present));
  }
  for (const stranger of await openStrangers(warehouse, table, files)) {
    const { day = Math.floor((stranger.times(source)[0] ?? 0) / DAY_MS) } = stranger.entry.file;
    await indexFile(tx, track, partitionOf(day), stranger.of(source));
  }
}

/** Throws if the table and the stream have different columns: the stream must be evolved or the table altered first. */
function checkShape(stream: Stream, { columns, design }: Table): void {
  unitedColumns(stream, columns);
  const there = new Set(columns.map(({ name }) => name));
  if (stream.columns.some(({ name }) => !there.has(name))) throw new ShapeChanged(design.name, {});
}

/** The rows of each day, in order of time. */
function rowsByDay(table: Table, rows: readonly LakeRow[]): Map<number, LakeRow[]> {
  const time = placeOf(table, 'timestamp');
  const inOrder = [...rows].sort((a, b) => Number(a[time]) - Number(b[time]));
  const days = new Map<number, LakeRow[]>();
  for (const row of inOrder) {
    const day = Math.floor(Number(row[time]) / DAY_MS);
    const known = days.get(day);
    if (known) known.push(row);
    else days.set(day, [row]);
  }
  return days;
}
