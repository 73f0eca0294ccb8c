import type { Database } from '../../../src/cursor/database/index.ts';
import { instantOf } from '../../../src/cursor/database/sql.ts';
import { STREAM_NAMES } from '../../../src/model/streams.ts';
import type { Found, Site, SiteName } from './sites.ts';

interface Place {
  db: Database;
  /** Where it is not the database of the state. */
  url?: string;
  schema: string;
  source: string;
}

/** Tables of a Postgres, with the state in the same database or in another. */
export function warehouseSite(name: SiteName, { db, url, schema, source }: Place): Site {
  /** A table that is not there yet is empty. */
  const select = async <T extends object>(table: string, columns: string, where: string): Promise<T[]> => {
    const [found] = await db.query<{ there: string | null }>({
      text: 'select to_regclass($1)::text as there',
      values: [`${schema}.${table}`],
    });
    if (!found?.there) return [];
    return db.query<T>({ text: `select ${columns} from ${schema}.${table} where ${where}`, values: [source] });
  };
  return {
    name,
    settings: { type: 'postgres', schema, ...(url && { url }) },
    events(stream) {
      const of = stream === 'clicks' ? 'null as name, null as customer' : 'event_name as name, customer_id as customer';
      return select<Found>(stream, `event_id as id, ${instantOf('"timestamp"')} as at, ${of}`, '_source = $1');
    },
    async shown(stream) {
      const columns = `${instantOf('complete_through')} as at`;
      const [row] = await select<{ at: number | null }>('coverage', columns, `source = $1 and stream = '${stream}'`);
      return row?.at ?? undefined;
    },
    async leftovers() {
      const receipts = await select<{ stream: string }>('_receipts', 'stream', `source = $1 and advance <> '{}'`);
      return receipts.map(({ stream }) => `the receipt of ${stream}`);
    },
    async empty() {
      for (const stream of STREAM_NAMES)
        await db.query({ text: `delete from ${schema}.${stream} where _source = $1`, values: [source] });
    },
    async customers() {
      const rows = await select<{ id: string }>('customers', 'customer_id as id', '_source = $1');
      return rows.map(({ id }) => id);
    },
  };
}
