import type { Instant } from '../../model/instant.ts';
import type { Stream } from '../../model/streams.ts';
import { DAY_MS } from '../../model/window.ts';
import { dropFile, findTrack } from '../files/event-index.ts';
import { changeTable } from './change-table.ts';
import { streamDesign } from './format/schema.ts';
import { filesOf, inDraft, loadTable, lockTable, type Warehouse } from './warehouse.ts';

const FILES_AT_ONCE = 500;

/** Takes the files of days before a moment out of the table. They are deleted with the snapshots that still name them. */
export async function pruneTable(
  warehouse: Warehouse,
  stream: Stream,
  source: string,
  before: Instant,
): Promise<boolean> {
  const design = streamDesign(stream);
  return inDraft(warehouse, async (tx, draft) => {
    await lockTable(tx, warehouse, design.name);
    const table = await loadTable(tx, warehouse, design);
    if (!table) return false;
    const days = [{ first: Number.MIN_SAFE_INTEGER, last: before / DAY_MS - 1 }];
    const old = (await filesOf(warehouse, table, { source, days })).filter((file) => file.source === source);
    const removed = old.slice(0, FILES_AT_ONCE);
    if (removed.length === 0) return false;
    await changeTable(tx, draft, table, { operation: 'delete', added: [], removed, sources: [source] });
    const track = await findTrack(tx, { sink: warehouse.name, stream: stream.name, source });
    const partitions = new Set(removed.map(({ file }) => (file.day ?? 0) * 24));
    if (track !== undefined) for (const partition of partitions) await dropFile(tx, track, partition);
    return old.length > removed.length;
  });
}
