import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from '../../../src/cursor/database/index.ts';
import { createFolderStore } from '../../../src/sinks/files/store/folder-store.ts';
import { createIcebergSink } from '../../../src/sinks/iceberg/iceberg-sink.ts';
import { MAINTENANCE } from '../../../src/sinks/iceberg/maintain.ts';
import { ageTable, lookAtTable, namedBy, relationOf, type SeenTable } from '../iceberg-place.ts';
import { filesIn, queryDuckdb } from '../lake-readers.ts';
import type { Found, Site } from './sites.ts';

const TABLES = ['clicks', 'leads', 'sales', 'links', 'customers'];

/** Iceberg tables in a folder, by the metadata that the catalog names and a stranger's Avro. */
export function tablesSite(state: Database, source: string, dir: string): Site {
  const path = join(dir, 'iceberg');
  const namespace = source.replaceAll('-', '_');
  const look = (table: string): Promise<SeenTable | undefined> =>
    lookAtTable(state, namespace, table).catch(() => undefined);
  const query = async (table: string, columns: string) => {
    const seen = await look(table);
    return seen && seen.files.length > 0 ? queryDuckdb(`select ${columns} from ${relationOf(seen)}`) : [];
  };
  return {
    name: 'tables',
    settings: { type: 'iceberg', warehouse: path, namespace },
    async events(stream) {
      const of = stream === 'clicks' ? 'null as name, null as customer' : 'event_name as name, customer_id as customer';
      const rows = await query(stream, `event_id as id, epoch_ms("timestamp") as at, ${of}`);
      return rows.map((row) => ({ ...row, at: Number(row.at) }) as Found);
    },
    shownBehindMs: 15 * 60_000,
    async shown(stream) {
      const properties = (await look(stream))?.metadata.properties as Record<string, string> | undefined;
      const through = properties?.[`tributary.complete-through.${source}`];
      return through === undefined ? undefined : Date.parse(through);
    },
    async age(ms) {
      for (const table of TABLES) {
        const seen = await look(table);
        if (seen) await ageTable(seen, ms);
      }
    },
    customers: async () => (await query('customers', 'customer_id as id')).map((row) => String(row.id)),
    /** A kill leaves files that no snapshot names: that `maintain` takes them away is looked at here, without waiting for a day. */
    async leftovers() {
      if (!existsSync(path)) return [];
      const sink = createIcebergSink({
        ...{ name: 'tables', state, readAgainMs: () => 0, warehouse: path, namespace, store: createFolderStore(path) },
        maintenance: { ...MAINTENANCE, orphanMs: -60_000, versionsMs: -60_000 },
      });
      await sink.maintain();
      await sink.close();
      const named = new Set<string>();
      for (const table of TABLES) {
        const seen = await look(table);
        if (seen) for (const file of await namedBy(seen)) named.add(file);
      }
      return (await filesIn(path)).filter((file) => !named.has(join(path, file)));
    },
  };
}
