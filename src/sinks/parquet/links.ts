import { LINKS } from '../../model/streams.ts';
import { inChange } from '../files/change.ts';
import { storeListing } from '../files/merge-link.ts';
import { META, openPartition } from '../files/partition-file.ts';
import { fileName, whileOpen, whileStaged } from '../files/store/store.ts';
import type { LinksSnapshot, Receipt } from '../sink.ts';
import { entityDesign } from '../table-columns.ts';
import { hideCoverage, showCoverage } from './catalog.ts';
import type { Lake } from './lake.ts';
import { writeNext } from './lake-files.ts';

const FOLDER = 'links';
const COLUMNS = entityDesign(LINKS).columns;

const pathOf = (source: string): string => `${FOLDER}/${fileName(source)}`;

const linksLock = ({ name }: Lake, source: string): string => `lake ${name} links ${source}`;

/** Replaces the source's file of links: readers see the previous listing or this one. */
export async function replaceLinks(lake: Lake, snapshot: LinksSnapshot): Promise<Receipt> {
  const { source, runId } = snapshot;
  const { state, store } = lake;
  const of = { source, stream: 'links' } as const;
  const metadata = { [META.source]: source, [META.stream]: of.stream, [META.run]: runId };
  const path = pathOf(source);
  const receipt = await inChange(state, linksLock(lake, source), async (change) => {
    await store.removeLeftovers(FOLDER, fileName(source));
    return whileOpen(await openPartition(store, path, of), (present) =>
      storeListing(state, change, lake.name, snapshot, {
        columns: COLUMNS,
        read: async (show) => present && show(present),
        async replace(all) {
          const made = await writeNext(lake, { path, present, columns: COLUMNS, all, metadata });
          // Without any link there is nothing to write. No earlier row is lost, because links that are gone stay, marked as missing.
          if (made) await whileStaged(made.staged, () => made.staged.publish(present?.identity));
        },
      }),
    );
  });
  await showCoverage(lake, of);
  return receipt;
}

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
