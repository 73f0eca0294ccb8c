import type { StreamName } from '../model/streams.ts';
import type { Database } from './database.ts';
import { checkFence } from './leases.ts';
import type { Sql } from './sql.ts';

export interface LeasedStream {
  source: string;
  stream: StreamName;
  epoch: number;
}

/**
 * A window is complete only for what was asked. When the filters of a stream change, nothing is proven any more: the ledger
 * begins anew, and every event that the new filters let through is read. Rows stay. Returns whether that was so.
 */
export function acceptFilters(db: Database, lease: LeasedStream, filters: string): Promise<boolean> {
  return db.transaction(async (tx) => {
    await checkFence(tx, lease);
    const [known] = await tx.query<{ filters: string }>(readFilters(lease));
    if (known?.filters === filters) return false;
    await tx.query(writeFilters(lease, filters));
    if (!known) return false;
    await tx.query(forgetWindows(lease));
    await tx.query(forgetWatermarks(lease));
    return true;
  });
}

const readFilters = ({ source, stream }: LeasedStream): Sql => ({
  text: 'select filters from tributary.filters where source = $1 and stream = $2',
  values: [source, stream],
});

const writeFilters = ({ source, stream }: LeasedStream, filters: string): Sql => ({
  text: `
    insert into tributary.filters (source, stream, filters) values ($1, $2, $3)
    on conflict (source, stream) do update set filters = excluded.filters, changed_at = now()`,
  values: [source, stream, filters],
});

const forgetWindows = ({ source, stream }: LeasedStream): Sql => ({
  text: 'delete from tributary.windows where source = $1 and stream = $2',
  values: [source, stream],
});

const forgetWatermarks = ({ source, stream }: LeasedStream): Sql => ({
  text: 'update tributary.cursors set complete_through = null where source = $1 and stream = $2',
  values: [source, stream],
});
