import { recordListing } from '../../../cursor/cursors.ts';
import { checkFence } from '../../../cursor/leases.ts';
import { LINKS } from '../../../model/streams.ts';
import { databaseNow } from '../../files/event-index.ts';
import { mergeListing } from '../../files/merge-link.ts';
import { createReshape, type LakeRow, type PartitionFile } from '../../files/partition-file.ts';
import { whileOpen } from '../../files/store/store.ts';
import { type LinksSnapshot, type Receipt, ShapeChanged } from '../../sink.ts';
import { changeTable } from '../change-table.ts';
import { openIfThere, writeDataFile } from '../data-file.ts';
import type { DataFile } from '../format/manifest.ts';
import { entityDesign } from '../format/schema.ts';
import { openStrangers, replaceStranger } from '../strangers.ts';
import {
  type Draft,
  filesOf,
  inDraft,
  loadTable,
  lockTable,
  type Table,
  type TableFile,
  type Warehouse,
} from '../warehouse.ts';

/** One snapshot of the table of links: the files of the source are replaced by new ones. */
export function replaceLinks(warehouse: Warehouse, snapshot: LinksSnapshot): Promise<Receipt> {
  const { source } = snapshot;
  return inDraft(warehouse, async (tx, draft) => {
    await lockTable(tx, warehouse, LINKS.name);
    const fence = await checkFence(tx, { ...snapshot, stream: 'links' });
    const table = await loadTable(tx, warehouse, entityDesign(LINKS));
    if (!table) throw new ShapeChanged(`${warehouse.namespace}.${LINKS.name}`, {});
    const { stored, added, removed } = await takeOut(draft, table, source);
    const { rows, receipt } = mergeListing(table.columns, stored, snapshot, await databaseNow(tx));
    const target = { table, source, day: undefined, beat: () => fence.renew() };
    added.push(...(await writeDataFile(draft, target, rows.length > 0 ? [{ rows }] : [])));
    await recordListing(tx, { source, sink: warehouse.name }, snapshot);
    if (added.length + removed.length > 0)
      await changeTable(tx, draft, table, { operation: 'overwrite', added, removed, sources: [source] });
    return receipt;
  });
}

interface TakenOut {
  stored: Map<string, LakeRow>;
  added: DataFile[];
  removed: TableFile[];
}

/** All that the table holds of a source. A file that another program joined is written anew for the other sources. */
async function takeOut(draft: Draft, table: Table, source: string): Promise<TakenOut> {
  const { warehouse } = draft;
  const key = table.columns.findIndex(({ name }) => name === LINKS.key);
  const out: TakenOut = { stored: new Map(), added: [], removed: [] };
  const take = async (present: PartitionFile): Promise<void> => {
    const reshape = createReshape(present.file.columns, table.columns);
    for (const group of present.file.groups)
      for (const row of (await present.rows(group)).map(reshape)) out.stored.set(String(row[key]), row);
  };
  const files = await filesOf(warehouse, table, { source });
  for (const entry of files.filter((one) => one.source === source)) {
    out.removed.push(entry);
    const present = await openIfThere(warehouse, entry.file);
    if (present) await whileOpen(present, take);
  }
  for (const stranger of await openStrangers(warehouse, table, files)) {
    if (!stranger.sources.includes(source)) continue;
    await take(stranger.of(source));
    out.removed.push(stranger.entry);
    const sources = stranger.sources.filter((one) => one !== source);
    out.added.push(...(await replaceStranger(draft, table, { ...stranger, sources })));
  }
  return out;
}
