import type { Stream } from '../../model/streams.ts';
import { holds, type Window } from '../../model/window.ts';
import { countRows } from '../files/read.ts';
import { removeMoved } from '../files/rework.ts';
import type { Held } from '../sink.ts';
import { streamDesign } from '../table-columns.ts';
import type { Change } from './change-table.ts';
import { type ForeignFile, openForeignFiles } from './foreign-files.ts';
import type { DataFile } from './format/manifest.ts';
import { liveFiles } from './format/manifest-list.ts';
import { noteChanges } from './heads.ts';
import { ownFile, partsOf } from './table-files.ts';
import { changeIfThere } from './table-writer.ts';
import {
  type DayRange,
  dayRangeOf,
  type EventsOf,
  filesOf,
  loadTable,
  pathOf,
  type Table,
  tableFolder,
  type Warehouse,
} from './warehouse.ts';

/** What the tables hold: our files that exist, and our rows in foreign files. */

/** `added` and `removed` are the files of a commit in progress. */
type Question = Partial<Pick<Change, 'added' | 'removed'>> & { source: string; windows: readonly Window[] };

/** The rows that a table holds of a source in each window. A file of ours is opened only if its time range exceeds a window. */
export async function holdingsOf(
  table: Table,
  { source, windows, added = [], removed = [] }: Question,
  isThere: (file: DataFile) => boolean = () => true,
): Promise<Held[]> {
  const gone = new Set(removed.map(({ file }) => file.path));
  const parts = (await partsOf(table, { source, days: windows.map(dayRangeOf) })).filter(
    ({ entry: { file } }) => !gone.has(file.path) && isThere(file),
  );
  const newParts = added.filter((one) => one.source === source).map((one) => ownFile(table, one, source));
  const counts = await countRows([...parts, ...newParts], windows);
  const foreignFiles = parts.flatMap(({ foreign }) => foreign ?? []);
  return windows.map((window, i) => {
    const foreign = describeForeign(table, { source, window, foreignFiles });
    return { rows: counts[i] ?? 0, ...(foreign !== undefined && { foreign }) };
  });
}

function describeForeign(
  table: Table,
  { source, window, foreignFiles }: { source: string; window: Window; foreignFiles: readonly ForeignFile[] },
): string | undefined {
  const { first, last } = dayRangeOf(window);
  const found: string[] = [];
  for (const foreign of foreignFiles) {
    const { day } = foreign.entry.file;
    const isOnDay = day === undefined || (day >= first && day <= last);
    const theirs = foreign.theirs.filter(({ source: owner, at }) =>
      owner !== undefined && owner !== source ? false : at === undefined ? isOnDay : holds(window, at),
    ).length;
    const rows = foreign.isCompaction ? [] : foreign.times(source).filter((at) => holds(window, at));
    if (theirs > 0) found.push(`${counted(theirs)} of another writer (${foreign.by})`);
    else if (rows.length > 0) found.push(`${counted(rows.length)} that another writer wrote anew (${foreign.by})`);
  }
  const deletes = liveFiles(...deletesOn(table, [{ first, last }]));
  if (deletes > 0) found.push(`${deletes} delete ${deletes === 1 ? 'file' : 'files'} of another writer`);
  if (found.length === 0) return undefined;
  return `${table.warehouse.namespace}.${table.design.name} holds ${found.slice(0, 3).join(', ')}; run verify --repair, which removes what is not ours`;
}

const counted = (n: number): string => `${n} ${n === 1 ? 'row' : 'rows'}`;

const deletesOn = ({ deletes }: Table, days: readonly DayRange[]) =>
  deletes.filter(
    (one) =>
      !one.days ||
      days.some(({ first, last }) => first <= (one.days?.last ?? last) && (one.days?.first ?? first) <= last),
  );

/** Records changes by others first. Lists the files, because somebody may have deleted files that the catalog names. */
export async function attestTable(warehouse: Warehouse, of: EventsOf, windows: readonly Window[]): Promise<Held[]> {
  const { stream, source } = of;
  const design = streamDesign(stream);
  await noteChanges(warehouse, design.name);
  const table = await loadTable(warehouse, design);
  if (!table) return windows.map(() => ({ rows: 0 }));
  const folder = `${tableFolder(warehouse, design.name)}/data`;
  const there = new Set<string>();
  for await (const { path } of warehouse.store.list(folder)) there.add(path);
  const isThere = ({ path: location }: DataFile): boolean => {
    const path = location.includes(`${folder}/`) ? pathOf(warehouse, location) : undefined;
    return path === undefined || there.has(path);
  };
  return holdingsOf(table, { source, windows }, isThere);
}

/** Removes other writers' rows and deletes on the days of these windows; our rows in foreign files move into files of ours. */
export async function removeForeign(warehouse: Warehouse, stream: Stream, windows: readonly Window[]): Promise<void> {
  const design = streamDesign(stream);
  const days = windows.map(dayRangeOf);
  await changeIfThere(warehouse, design, async ({ table, takeOver, publish }) => {
    const foreignFiles = await openForeignFiles(table, await filesOf(table, { days }));
    const unwanted = foreignFiles.filter(({ isCompaction }) => !isCompaction);
    const gone = new Set(deletesOn(table, days));
    if (unwanted.length === 0 && gone.size === 0) return;
    for (const foreign of unwanted) await takeOver(foreign);
    await publish({ operation: 'overwrite', sources: [], deletes: table.deletes.filter((one) => !gone.has(one)) });
  });
}

export async function removeMovedRows(warehouse: Warehouse, of: EventsOf, window: Window): Promise<void> {
  const { stream, source } = of;
  await changeIfThere(warehouse, streamDesign(stream), async ({ table, rework }) =>
    removeMoved(await partsOf(table, { source }), window, rework),
  );
}
