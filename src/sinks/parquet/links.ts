import { recordListing } from '../../cursor/cursors.ts';
import type { Queryable } from '../../cursor/database/index.ts';
import { checkFence } from '../../cursor/leases.ts';
import { LINKS } from '../../model/streams.ts';
import { databaseNow, lock } from '../files/event-index.ts';
import { createLayout } from '../files/layout.ts';
import { linkColumns, mergeListing } from '../files/merge-link.ts';
import {
  createReshape,
  type LakeRow,
  META,
  openPartition,
  type PartitionFile,
  schemaVersion,
} from '../files/partition-file.ts';
import { fileName } from '../files/store/store.ts';
import { writeFile } from '../files/write-file.ts';
import type { LinksSnapshot, Receipt } from '../sink.ts';
import { hideCoverage, showCoverage } from './catalog.ts';
import type { Lake } from './lake.ts';

const FOLDER = 'links';

const pathOf = (source: string): string => `${FOLDER}/${fileName(source)}`;

const lockLinks = (tx: Queryable, { name }: Lake, source: string): Promise<void> =>
  lock(tx, `lake ${name} links ${source}`);

/** One file per source, replaced whole: readers see the listing before or this one. */
export async function replaceLinks(lake: Lake, snapshot: LinksSnapshot): Promise<Receipt> {
  const { source } = snapshot;
  const track = { source, stream: 'links', sink: lake.name } as const;
  const receipt = await lake.state.transaction(async (tx) => {
    await lockLinks(tx, lake, source);
    const fence = await checkFence(tx, { ...snapshot, stream: 'links' });
    await lake.store.removeLeftovers(FOLDER, fileName(source));
    const present = await openPartition(lake.store, pathOf(source), track);
    try {
      const columns = linkColumns();
      const stored = present ? await storedRows(present) : new Map<string, LakeRow>();
      const { rows, receipt } = mergeListing(columns, stored, snapshot, await databaseNow(tx));
      await write(lake, snapshot, present, rows, () => fence.renew());
      await recordListing(tx, track, snapshot);
      return receipt;
    } finally {
      await present?.close();
    }
  });
  await showCoverage(lake, track);
  return receipt;
}

async function storedRows(present: PartitionFile): Promise<Map<string, LakeRow>> {
  const columns = linkColumns();
  const key = columns.findIndex(({ name }) => name === LINKS.key);
  const reshape = createReshape(present.file.columns, columns);
  const rows = new Map<string, LakeRow>();
  for (const group of present.file.groups) {
    for (const row of (await present.rows(group)).map(reshape)) rows.set(String(row[key]), row);
  }
  return rows;
}

/** The new file holds the present one unchanged, for readers that had just opened it: see `files/layout.ts`. */
async function write(
  lake: Lake,
  { source, runId }: LinksSnapshot,
  present: PartitionFile | undefined,
  rows: readonly LakeRow[],
  beat: () => Promise<void>,
): Promise<void> {
  const columns = linkColumns();
  const staged = await lake.store.stage(pathOf(source));
  try {
    const metadata = {
      [META.source]: source,
      [META.stream]: 'links',
      [META.run]: runId,
      [META.schema]: schemaVersion(columns),
    };
    const around = present && { layout: createLayout(present, () => false), present };
    const made = await writeFile(
      staged,
      { columns, compression: lake.compression, metadata, beat, ...(around && { around }) },
      [{ rows }],
    );
    // Without any link there is nothing to write, and nothing that was written before is lost: links stay, marked as missing.
    if (made) await staged.publish(present?.identity);
  } finally {
    await staged.discard();
  }
}

/** With its source. Returns how many rows the file had. */
export async function eraseLinks(lake: Lake, source: string): Promise<Record<string, number>> {
  await hideCoverage(lake, { source, stream: 'links' });
  return lake.state.transaction(async (tx) => {
    await lockLinks(tx, lake, source);
    await lake.store.removeLeftovers(FOLDER, fileName(source));
    const present = await openPartition(lake.store, pathOf(source), { source, stream: 'links' });
    if (!present) return {};
    const { rows } = present.file;
    await present.close();
    await lake.store.remove(present.path, present.identity);
    return { [present.path]: rows };
  });
}
