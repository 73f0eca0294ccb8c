import type { Config } from '../config/index.ts';
import { readAgainMs } from '../config/sinks.ts';
import { connect, type Database } from '../cursor/database/index.ts';
import type { Log } from '../model/log.ts';
import type { ReadAgainMs } from '../sinks/files/event-index.ts';
import { createPostgresSink } from '../sinks/postgres/postgres-sink.ts';
import type { Sink } from '../sinks/sink.ts';
import { s3Settings } from './environment.ts';
import { unknownName } from './jobs.ts';
import type { Closers } from './resources.ts';

/** Opens the sinks of the config by their type. */

type SinkSettings = Config['sinks'][string];
export type ChosenSink = [name: string, settings: SinkSettings];

export function chooseSinks({ sinks }: Config, only: string | undefined): ChosenSink[] {
  const names = Object.keys(sinks);
  if (only !== undefined && !names.includes(only)) throw unknownName('sink', only, names);
  return Object.entries(sinks).filter(([name]) => only === undefined || name === only);
}

/** What a sink is opened with. */
interface Opening {
  config: Config;
  state: Database;
  closers: Closers;
  log?: Log;
}

export async function openSinks(chosen: readonly ChosenSink[], opening: Opening): Promise<Sink[]> {
  const sinks: Sink[] = [];
  for (const each of chosen) sinks.push(await openSink(each, opening));
  return sinks;
}

export async function openSink([name, settings]: ChosenSink, opening: Opening): Promise<Sink> {
  const sink = await openByType(name, settings, opening);
  opening.closers.push(() => sink.close());
  return settings.keep === undefined ? sink : { ...sink, keepMs: settings.keep };
}

function openByType(name: string, settings: SinkSettings, opening: Opening): Promise<Sink> {
  switch (settings.type) {
    case 'postgres':
      return openWarehouse(name, settings, opening);
    case 'parquet':
      return openLake(name, settings, opening);
    case 'iceberg':
      return openTables(name, settings, opening);
  }
}

async function openWarehouse(
  name: string,
  { url, schema, partition, indexes }: SinkSettings & { type: 'postgres' },
  { config, state, closers, log }: Opening,
): Promise<Sink> {
  // In the state's database, data and cursor share a transaction. Only equal URLs tell that it is the same database.
  const db = url === undefined || url === config.state.url ? state : connect({ url });
  if (db !== state) closers.push(() => db.close());
  return createPostgresSink({ name, db, schema, state, partition, indexes, ...(log && { log }) });
}

const readAgainIn =
  ({ sources }: Config): ReadAgainMs =>
  (source, stream) =>
    readAgainMs(sources[source]?.streams[stream]);

/** Imported on demand: most starts need no files. */
async function openFiles(place: string, fileMode: number | undefined) {
  const { openStore } = await import('../sinks/files/store/open-store.ts');
  return openStore(place, { ...s3Settings(), fileMode });
}

async function openLake(
  name: string,
  { path, partition, compression, fileMode }: SinkSettings & { type: 'parquet' },
  { config, state }: Opening,
): Promise<Sink> {
  const { createParquetSink } = await import('../sinks/parquet/parquet-sink.ts');
  const store = await openFiles(path, fileMode);
  return createParquetSink({ name, store, state, readAgainMs: readAgainIn(config), scheme: partition, compression });
}

async function openTables(
  name: string,
  { warehouse, namespace, catalog, fileMode, keepSnapshots: keep }: SinkSettings & { type: 'iceberg' },
  { config, state }: Opening,
): Promise<Sink> {
  const { createIcebergSink } = await import('../sinks/iceberg/iceberg-sink.ts');
  const store = await openFiles(warehouse, fileMode);
  const where = { name, state, store, warehouse, namespace, ...(catalog.type === 'rest' && { rest: catalog }) };
  return createIcebergSink({ ...where, readAgainMs: readAgainIn(config), maintenance: { keep } });
}
