import type { StreamName } from '../../model/streams.ts';
import { findTrack } from '../files/event-index.ts';
import type { LakeRow, PartitionFile } from '../files/partition-file.ts';
import type { Counted } from '../files/read.ts';
import { recordRework, type Visit } from '../files/rework.ts';
import { whileOpen } from '../files/store/store.ts';
import { type Edits, editedPieces } from '../files/write-file.ts';
import { notThere, openIfThere, writeDataFile } from './data-file.ts';
import type { DataFile } from './format/manifest.ts';
import { openStrangers, replaceStranger, type Stranger } from './strangers.ts';
import { type DayRange, type Draft, filesOf, type Table, type TableFile, timeIn, timesOf } from './warehouse.ts';

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

export type TableWriter = ReturnType<typeof createTableWriter>;

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
