import { LINKS } from '../../model/streams.ts';
import { inChange } from '../files/change.ts';
import { createLayout } from '../files/layout.ts';
import { storeListing } from '../files/merge-link.ts';
import { type LakeRow, META, openPartition, type PartitionFile, schemaVersion } from '../files/partition-file.ts';
import { fileName, whileOpen, whileStaged } from '../files/store/store.ts';
import { writeFile } from '../files/write-file.ts';
import type { LinksSnapshot, Receipt } from '../sink.ts';
import { entityColumns } from '../table-columns.ts';
import { hideCoverage, showCoverage } from './catalog.ts';
import type { Lake } from './lake.ts';

const FOLDER = 'links';
const COLUMNS = entityColumns(LINKS).map(({ doc, ...column }) => column);

const pathOf = (source: string): string => `${FOLDER}/${fileName(source)}`;

const linksLock = ({ name }: Lake, source: string): string => `lake ${name} links ${source}`;

/** One file per source, replaced whole: readers see the listing before or this one. */
export async function replaceLinks(lake: Lake, snapshot: LinksSnapshot): Promise<Receipt> {
  const { source } = snapshot;
  const track = { source, stream: 'links', sink: lake.name } as const;
  const { state } = lake;
  const receipt = await inChange(state, linksLock(lake, source), async (change) => {
    await lake.store.removeLeftovers(FOLDER, fileName(source));
    return whileOpen(await openPartition(lake.store, pathOf(source), track), (present) =>
      storeListing(state, change, lake.name, snapshot, {
        columns: COLUMNS,
        read: async (show) => present && show(present),
        replace: (rows) => write(lake, snapshot, present, rows),
      }),
    );
  });
  await showCoverage(lake, track);
  return receipt;
}

/** The new file holds the present one unchanged, for readers that had just opened it: see `files/layout.ts`. */
async function write(
  lake: Lake,
  { source, runId }: LinksSnapshot,
  present: PartitionFile | undefined,
  rows: readonly LakeRow[],
): Promise<void> {
  await whileStaged(await lake.store.stage(pathOf(source)), async (staged) => {
    const metadata = {
      [META.source]: source,
      [META.stream]: 'links',
      [META.run]: runId,
      [META.schema]: schemaVersion(COLUMNS),
    };
    const around = present && { layout: createLayout(present, () => false), present };
    const made = await writeFile(
      staged,
      { columns: COLUMNS, compression: lake.compression, metadata, ...(around && { around }) },
      [{ rows }],
    );
    // Without any link there is nothing to write, and nothing that was written before is lost: links stay, marked as missing.
    if (made) await staged.publish(present?.identity);
  });
}

/** With its source. Returns how many rows the file had. */
export async function eraseLinks(lake: Lake, source: string): Promise<Record<string, number>> {
  await hideCoverage(lake, { source, stream: 'links' });
  return inChange(lake.state, linksLock(lake, source), async () => {
    await lake.store.removeLeftovers(FOLDER, fileName(source));
    const present = await openPartition(lake.store, pathOf(source), { source, stream: 'links' });
    if (!present) return {};
    const { rows } = present.file;
    await present.close();
    await lake.store.remove(present.path, present.identity);
    return { [present.path]: rows };
  });
}
