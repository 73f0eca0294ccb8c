import type { Database, Queryable } from '../../cursor/database.ts';
import { quoteIdent } from '../../cursor/sql.ts';
import { ENTITIES } from '../../model/entities.ts';
import { OF_CLICK, OF_CUSTOMER } from '../../model/forgotten.ts';
import { STREAM_NAMES, STREAMS, type StreamName } from '../../model/streams.ts';
import type { Erasure } from '../sink.ts';

/** How many rows of which table were touched. */
type Touched = Record<string, number>;

export async function erase(db: Database, schema: string, erasure: Erasure): Promise<Touched> {
  return db.transaction(async (tx) => {
    const touched: Touched = {};
    const run = async (table: string, text: string, values: readonly unknown[]): Promise<void> => {
      if (!(await exists(tx, schema, table))) return;
      const place = `${quoteIdent(schema)}.${quoteIdent(table)}`;
      touched[`${schema}.${table}`] = (await tx.query({ text: text.replace('TABLE', place), values })).length;
    };
    const { source } = erasure;
    if (erasure.kind === 'source') {
      for (const table of [...STREAM_NAMES, ...ENTITIES.map(({ name }) => name), '_receipts', '_cursors']) {
        const owner = table.startsWith('_') ? 'source' : '_source';
        await run(table, `delete from TABLE where ${owner} = $1 returning 1`, [source]);
      }
      return touched;
    }
    if (erasure.kind === 'customer') {
      for (const stream of ['leads', 'sales'] as const)
        await run(stream, blank(stream, 'customer_id', OF_CUSTOMER), [source, erasure.id]);
      await run('customers', 'delete from TABLE where _source = $1 and customer_id = $2 returning 1', [
        source,
        erasure.id,
      ]);
    } else {
      await run('clicks', 'delete from TABLE where _source = $1 and event_id = $2 returning 1', [source, erasure.id]);
      for (const stream of ['leads', 'sales'] as const)
        await run(stream, blank(stream, 'click_id', OF_CLICK), [source, erasure.id]);
    }
    return touched;
  });
}

function blank(stream: StreamName, key: string, isGone: (column: string) => boolean): string {
  const columns = STREAMS[stream].columns.map(({ name }) => name).filter(isGone);
  const sets = [...columns, '_extra'].map((name) => `${quoteIdent(name)} = null`).join(', ');
  return `update TABLE set ${sets}, _synced_at = now() where _source = $1 and ${quoteIdent(key)} = $2 returning 1`;
}

async function exists(tx: Queryable, schema: string, table: string): Promise<boolean> {
  const [found] = await tx.query<{ there: string | null }>({
    text: 'select to_regclass($1)::text as there',
    values: [`${quoteIdent(schema)}.${quoteIdent(table)}`],
  });
  return found?.there != null;
}
