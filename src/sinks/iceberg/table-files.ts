import type { Instant } from '../../model/instant.ts';
import type { Stream } from '../../model/streams.ts';
import { DAY_MS } from '../../model/window.ts';
import type { Incoming } from '../files/compare-rows.ts';
import { insertKeys, keysIn, type Partition } from '../files/event-index.ts';
import { addSought, type Files, locateEvents } from '../files/merge.ts';
import { type PartitionFile, unitedColumns } from '../files/partition-file.ts';
import type { Counted } from '../files/read.ts';
import { whileOpen } from '../files/store/store.ts';
import { ShapeChanged } from '../sink.ts';
import { missingDataFile, openDataFile } from './data-file.ts';
import { type ForeignFile, openForeignFiles } from './foreign-files.ts';
import type { DataFile } from './format/manifest.ts';
import { type DayRange, dayRangeOf, filesOf, type Table, type TableFile } from './warehouse.ts';

interface TableFeed {
  table: Table;
  feed: number;
  source: string;
}

/** A source's files in a table, for reading. The index names the day of each event; an event older than the index is on its own day. */
export const eventFiles = ({ table, feed, source }: TableFeed): Files<Part> => ({
  columns: table.columns,
  async find(incoming, fullWindows) {
    const { sought, others, from } = await locateEvents(table.warehouse.state, feed, incoming);
    for (const one of others) {
      const partition = partitionOf(Math.floor(one.at / DAY_MS));
      if (partition < from) addSought(sought, partition, [one]);
    }
    const days = [
      ...[...sought.keys()].map((partition) => ({ first: partition / 24, last: partition / 24 })),
      ...fullWindows.map(dayRangeOf),
    ];
    if (days.length === 0) return [];
    const soughtIn = (day: number | undefined): Map<string, Incoming> =>
      day === undefined ? new Map(incoming.map((one) => [one.id, one])) : (sought.get(partitionOf(day)) ?? new Map());
    const parts = (await partsOf(table, { source, days })).map((file) => {
      const { oldest, newest, entry, foreign, open } = file;
      const here = soughtIn(entry.file.day);
      const hits = [...here.values()].filter(({ at }) => at >= oldest && at <= newest).length;
      const within = fullWindows.filter(({ start, end }) => start <= newest && end > oldest);
      // A file with rows that are not ours is not rewritten before a repair.
      const isFixed = foreign !== undefined && !foreign.isCompaction;
      return { hits: foreign ? -1 : hits, target: { file, sought: here, fullWindows: within, open, isFixed } };
    });
    // Most events come again with an unchanged time, so the files that cover those times are read first and usually suffice.
    return parts.sort((a, b) => b.hits - a.hits).map(({ target }) => target);
  },
});

/** All files of a source: any of them may hold any link or customer. */
export const entityFiles = ({ table, source }: Omit<TableFeed, 'feed'>): Files<Part> => ({
  columns: table.columns,
  async find(incoming) {
    const sought = new Map(incoming.map((one) => [one.id, one]));
    return (await partsOf(table, { source })).map((file) => ({ file, sought, fullWindows: [], open: file.open }));
  },
});

/** The index counts partitions in hours, as for the lake. */
export const partitionOf = (day: number): Partition => day * 24;

/** Adds the events of a range of partitions to the index. */
export async function indexTable({ table, feed, source }: TableFeed, from: Partition, end: Partition): Promise<void> {
  const { state } = table.warehouse;
  const days = [{ first: from / 24, last: end / 24 - 1 }];
  for (const { entry, newest, open } of await partsOf(table, { source, days })) {
    const { day = Math.floor(newest / DAY_MS) } = entry.file;
    const present = await open();
    if (present) await state.query(insertKeys(feed, partitionOf(day), await whileOpen(present, keysIn)));
  }
}

/** Throws if table and stream have different columns: before a write the stream must be evolved or the table altered. */
export function checkShape(stream: Stream, { columns, design }: Table): void {
  unitedColumns(stream, columns);
  const there = new Set(columns.map(({ name }) => name));
  if (stream.columns.some(({ name }) => !there.has(name))) throw new ShapeChanged(design.name, {});
}

/** The rows of a source in one data file: all rows of our own file, or some of a foreign one. */
export interface Part extends Counted {
  source: string;
  entry: TableFile;
  foreign?: ForeignFile;
}

/** A file of ours, described by its manifest entry, without opening it. */
export function ownFile<E extends { file: DataFile }>(table: Table, entry: E, source: string) {
  const { file } = entry;
  const time = table.columns.find(({ name }) => name === 'timestamp');
  const { lower, upper } = file.columns.get(time?.fieldIds?.[0] ?? 0) ?? {};
  const instant = (bytes?: Buffer): Instant | undefined => bytes && Number(bytes.readBigInt64LE()) / 1000;
  return {
    source,
    entry,
    rows: file.rows,
    oldest: instant(lower) ?? Number.NEGATIVE_INFINITY,
    newest: instant(upper) ?? Number.POSITIVE_INFINITY,
    open: () => openDataFile(table.warehouse, file),
  };
}

/** Our own files first. */
export async function partsOf(table: Table, of: { source: string; days?: readonly DayRange[] }): Promise<Part[]> {
  const { source } = of;
  const listed = await filesOf(table, of);
  const own = listed.filter((entry) => entry.source === source).map((entry): Part => ownFile(table, entry, source));
  const foreignFiles = (await openForeignFiles(table, listed)).map((foreign): Part => {
    const times = foreign.times(source);
    return {
      source,
      entry: foreign.entry,
      foreign,
      rows: times.length,
      oldest: times.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY),
      newest: times.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY),
      open: async () => foreign.of(source),
    };
  });
  return [...own, ...foreignFiles];
}

export async function openPart({ entry, open }: Part): Promise<PartitionFile> {
  const file = await open();
  if (!file) throw missingDataFile(entry.file.path);
  return file;
}
