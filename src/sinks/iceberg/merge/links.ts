import { LINKS } from '../../../model/streams.ts';
import { storeListing } from '../../files/merge-link.ts';
import { whileOpen } from '../../files/store/store.ts';
import type { LinksSnapshot, Receipt } from '../../sink.ts';
import { changeTable } from '../change-table.ts';
import { entityDesign } from '../format/schema.ts';
import { createTableWriter, partsOf } from '../parts.ts';
import { inDraft, preparedTable, type Warehouse } from '../warehouse.ts';

/** One snapshot of the table of links: the files of the source are replaced by new ones. */
export function replaceLinks(warehouse: Warehouse, snapshot: LinksSnapshot): Promise<Receipt> {
  const { source } = snapshot;
  const { state } = warehouse;
  return inDraft(warehouse, LINKS.name, async (draft) => {
    const table = await preparedTable(warehouse, entityDesign(LINKS));
    const parts = (await partsOf(warehouse, table, { source })).filter(({ rows }) => rows > 0);
    return storeListing(state, draft, warehouse.name, snapshot, {
      columns: table.columns,
      async read(show) {
        for (const part of parts) {
          const present = await part.open();
          if (present) await whileOpen(present, show);
        }
      },
      async replace(rows) {
        const writer = createTableWriter(draft, table, source);
        for (const part of parts) await writer.drop(part);
        await writer.add(rows);
        const { added, removed } = writer;
        if (added.length + removed.length > 0)
          await changeTable(draft, table, { operation: 'overwrite', added, removed, sources: [source] });
      },
    });
  });
}
