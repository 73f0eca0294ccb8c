import type { Database } from '../../cursor/database/index.ts';
import { checkLake } from '../parquet/parquet-sink.ts';
import type { Store } from '../parquet/store/store.ts';
import type { SinkWith } from '../sink.ts';
import { openBatch } from './batch.ts';
import { createSqlCatalog } from './catalog.ts';
import { erase } from './erase.ts';
import { maintain, tend, UPKEEP, type Upkeep } from './maintain.ts';
import { prepareTables } from './prepare.ts';
import { compareTable, readTable } from './read-tables.ts';
import { createRestCatalog, type RestCatalogOptions } from './rest-catalog.ts';
import { type Warehouse, warehouseUri } from './warehouse.ts';

export interface IcebergSinkOptions {
  name: string;
  /** Where cursors live, and the catalog. */
  state: Database;
  /** A folder, or `s3://bucket/prefix`; the store is the same place. */
  warehouse: string;
  store: Store;
  namespace: string;
  upkeep?: Upkeep;
  /** Absent: in the state's own database. */
  rest?: RestCatalogOptions;
}

export type IcebergSink = SinkWith<'publishProgress' | 'erase' | 'check' | 'compare' | 'read' | 'maintain'>;

/** As for the lake: enough for a full row group. */
const BATCH_ROWS = 20_000;

/** A sink of Iceberg tables. Nothing is to be recovered: catalog, ledger and cursor change in one transaction. */
export function createIcebergSink(options: IcebergSinkOptions): IcebergSink {
  const { name, state, warehouse: path, store, namespace, upkeep = UPKEEP, rest } = options;
  const catalog = rest ? createRestCatalog(rest) : createSqlCatalog();
  const warehouse: Warehouse = { name, state, store, namespace, uri: warehouseUri(path), catalog };
  return {
    name,
    place: `Iceberg tables ${namespace}.* in ${warehouse.uri}`,
    batchRows: BATCH_ROWS,
    prepare: (stream) => prepareTables(warehouse, stream),
    open: async (stream) => openBatch(warehouse, stream),
    publishProgress: ({ stream }) => tend(warehouse, stream, upkeep),
    erase: (erasure) => erase(warehouse, erasure),
    maintain: () => maintain(warehouse, upkeep),
    check: () => checkLake(store, `sink ${name}`),
    compare: (comparison) => compareTable(warehouse, comparison),
    read: (stream, source, window) => readTable(warehouse, stream, source, window),
    close: () => store.close(),
  };
}
