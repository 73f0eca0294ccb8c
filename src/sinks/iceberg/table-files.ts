import type { Stream, StreamName } from '../../model/streams.ts';
import { DAY_MS } from '../../model/window.ts';
import type { Change } from '../files/change.ts';
import { addKeys, dropKeys, findTrack, insertKeys, keysIn, type Partition } from '../files/event-index.ts';
import { groupBy } from '../files/group-by.ts';
import { allOf, type Files, homesOf, seek, type WritableFiles } from '../files/merge.ts';
import { type LakeRow, type PartitionFile, unitedColumns } from '../files/partition-file.ts';
import type { Counted } from '../files/read.ts';
import { recordRework, type Visit } from '../files/rework.ts';
import { whileOpen } from '../files/store/store.ts';
import { editsOf, extractMoved, type Incoming } from '../files/survey.ts';
import { type Edits, editedPieces } from '../files/write-file.ts';
import { ShapeChanged } from '../sink.ts';
import { notThere, openIfThere, orderOf, writeDataFile } from './data-file.ts';
import type { DataFile } from './format/manifest.ts';
import { openStrangers, replaceStranger, type Stranger } from './strangers.ts';
import {
  type DayRange,
  type Draft,
  daysOf,
  filesOf,
  type Table,
  type TableFile,
  timeIn,
  timesOf,
} from './warehouse.ts';

interface TableTrack {
  table: Table;
  /** Of the index. */
  track: number;
  source: string;
}

/** The files of a source in a table, for reading. Which day each event is in, the index says; an older one is in the day of its time. */
export const eventFiles = ({ table, track, source }: TableTrack): Files<Part> => ({
  columns: table.columns,
  async find(incoming, wholes) {
    const { sought, others, from } = await homesOf(table.warehouse.state, track, incoming);
    for (const one of others) {
      const partition = partitionOf(Math.floor(one.at / DAY_MS));
      if (partition < from) seek(sought, partition, [one]);
    }
    const days = [
      ...[...sought.keys()].map((partition) => ({ first: partition / 24, last: partition / 24 })),
      ...wholes.map(daysOf),
    ];
    if (days.length === 0) return [];
    const soughtIn = (day: number | undefined): Map<string, Incoming> =>
      day === undefined ? new Map(incoming.map((one) => [one.id, one])) : (sought.get(partitionOf(day)) ?? new Map());
    const parts = (await partsOf(table, { source, days })).map((file) => {
      const { oldest, newest, entry, stranger, open } = file;
      const here = soughtIn(entry.file.day);
      const hits = [...here.values()].filter(({ at }) => at >= oldest && at <= newest).length;
      const within = wholes.filter(({ start, end }) => start <= newest && end > oldest);
      // A file with rows that are not ours stays as it is until it is repaired.
      const isFixed = stranger !== undefined && !stranger.isCompaction;
      return { hits: stranger ? -1 : hits, place: { file, sought: here, wholes: within, open, isFixed } };
    });
    // Most events come again with an unchanged time: the files that hold those times are read first, and usually suffice.
    return parts.sort((a, b) => b.hits - a.hits).map(({ place }) => place);
  },
});

/** All files of a source, which may hold any of its links or customers. */
export const entityFiles = ({ table, source }: Omit<TableTrack, 'track'>): Files<Part> => ({
  columns: table.columns,
  async find(incoming) {
    const sought = new Map(incoming.map((one) => [one.id, one]));
    return (await partsOf(table, { source })).map((file) => ({ file, sought, wholes: [], open: file.open }));
  },
});

/**
 * The same, to be changed. Files that hold a changed row are rewritten, with untouched row groups copied as they are; new rows get a new
 * file, one for each day. The table does not refer to these files before the caller commits them.
 */
export const writableTable = (
  change: Change,
  files: Files<Part>,
  { table, track, writer }: { table: Table; track?: number; writer: TableWriter },
): WritableFiles<Part> => ({
  ...files,
  async write({ works, newEvents, gone, rule, now }) {
    for (const part of gone) await writer.drop(part);
    const fresh = [...newEvents];
    const inOrder = orderOf(table);
    for (const { place, findings } of works) {
      const { file } = place;
      await whileOpen(await openPart(file), async (present) => {
        fresh.push(...(await extractMoved(present, findings, rule, table.columns)));
        await writer.replace(file, present, editsOf(findings, rule, table.columns, now));
      });
      const moved = allOf(findings.moved).map(({ key }) => key);
      if (track !== undefined && moved.length > 0)
        change.later(dropKeys(track, partitionOf(file.entry.file.day ?? 0), moved));
    }
    fresh.sort((a, b) => inOrder(a.row, b.row));
    for (const [day, rows] of groupBy(fresh, ({ at }) =>
      table.design.isByDay ? Math.floor(at / DAY_MS) : undefined,
    )) {
      await writer.add(
        rows.map(({ row }) => row),
        day,
      );
      if (track === undefined || day === undefined) continue;
      const keys = rows.map(({ key }) => key);
      change.later(addKeys(track, partitionOf(day), keys));
    }
  },
});

/** The index counts partitions in hours, as for the lake. */
const partitionOf = (day: number): Partition => day * 24;

/** Adds the events of the days from one partition to another to the index. */
export async function indexTable({ table, track, source }: TableTrack, from: Partition, end: Partition): Promise<void> {
  const { state } = table.warehouse;
  const days = [{ first: from / 24, last: end / 24 - 1 }];
  for (const { entry, newest, open } of await partsOf(table, { source, days })) {
    const { day = Math.floor(newest / DAY_MS) } = entry.file;
    const present = await open();
    if (present) await state.query(insertKeys(track, partitionOf(day), await whileOpen(present, keysIn)));
  }
}

/** Before writing. Throws if the table and the stream have different columns: the stream must be evolved or the table altered first. */
export function checkShape(stream: Stream, { columns, design }: Table): void {
  unitedColumns(stream, columns);
  const there = new Set(columns.map(({ name }) => name));
  if (stream.columns.some(({ name }) => !there.has(name))) throw new ShapeChanged(design.name, {});
}

/** The rows of a source in one file of a table: all of a file of ours, and some of one that another program wrote. */
export interface Part extends Counted {
  entry: TableFile;
  stranger?: Stranger;
}

/** Files of ours first. */
export async function partsOf(table: Table, of: { source: string; days?: readonly DayRange[] }): Promise<Part[]> {
  const { source } = of;
  const listed = await filesOf(table, of);
  const own = listed
    .filter((entry) => entry.source === source)
    .map(
      (entry): Part => ({
        entry,
        rows: entry.file.rows,
        ...timesOf(entry, timeIn(table)),
        open: () => openIfThere(table.warehouse, entry.file),
      }),
    );
  const strangers = (await openStrangers(table, listed)).map((stranger): Part => {
    const times = stranger.times(source);
    return {
      entry: stranger.entry,
      stranger,
      rows: times.length,
      oldest: times.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY),
      newest: times.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY),
      open: async () => stranger.of(source),
    };
  });
  return [...own, ...strangers];
}

/** Where it must be there. */
export async function openPart({ entry, open }: Part): Promise<PartitionFile> {
  const file = await open();
  if (!file) throw notThere(entry.file.path);
  return file;
}

/** Files that a change of a table adds and removes. No snapshot lists them before it is published. */
export interface NewFiles {
  added: DataFile[];
  removed: TableFile[];
}

type TableWriter = ReturnType<typeof createTableWriter>;

/** Writes the files of a source in a table. */
export function createTableWriter(draft: Draft, table: Table, source: string) {
  const [added, removed]: [DataFile[], TableFile[]] = [[], []];
  const target = (day: number | undefined) => ({ table, source, day });
  const replace = async ({ entry, stranger }: Part, present: PartitionFile, edits: Edits): Promise<void> => {
    removed.push(entry);
    const pieces = editedPieces(present, table.columns, edits);
    added.push(
      ...(stranger
        ? await replaceStranger(draft, table, stranger, { source, edits })
        : await writeDataFile(draft, target(entry.file.day), pieces)),
    );
  };
  return {
    added,
    removed,
    /** Rows in the table's order, as a new file. */
    async add(rows: readonly LakeRow[], day?: number): Promise<void> {
      added.push(...(await writeDataFile(draft, target(day), [{ rows }])));
    },
    /** The opened part with some of its groups edited; untouched ones are copied as they are. */
    replace,
    /** Does what it is told of a part, here and in the state. */
    async rework(part: Part, visit: Visit): Promise<void> {
      const track = { sink: draft.warehouse.name, stream: table.design.name as StreamName, source };
      await whileOpen(await openPart(part), async (present) => {
        const wish = await visit(present);
        if (wish === 'leave') return;
        await replace(part, present, wish.edits);
        const id = await findTrack(draft.warehouse.state, track);
        recordRework(draft, track, { id, partition: (part.entry.file.day ?? 0) * 24 }, wish);
      });
    },
    /** Rows of other sources that another program joined with it are written anew. */
    async drop({ entry, stranger }: Part): Promise<void> {
      removed.push(entry);
      if (!stranger) return;
      const sources = stranger.sources.filter((one) => one !== source);
      added.push(...(await replaceStranger(draft, table, { ...stranger, sources })));
    },
  };
}
