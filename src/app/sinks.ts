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

async function openByType(name: string, settings: SinkSettings, opening: Opening): Promise<Sink> {
  const { config, state, closers, log } = opening;
  if (settings.type === 'postgres') {
    const { url, schema, partition, indexes } = settings;
    // In the state's database, data and cursor share a transaction. Only equal URLs tell that it is the same database.
    const db = url === undefined || url === config.state.url ? state : connect({ url });
    if (db !== state) closers.push(() => db.close());
    return createPostgresSink({ name, db, schema, state, partition, indexes, ...(log && { log }) });
  }
  // Imported on demand: most starts need no files.
  const { openStore } = await import('../sinks/files/store/open-store.ts');
  const { fileMode } = settings;
  const place = settings.type === 'parquet' ? settings.path : settings.warehouse;
  const again: ReadAgainMs = (source, stream) => readAgainMs(config.sources[source]?.streams[stream]);
  const files = { name, state, store: await openStore(place, { ...s3Settings(), fileMode }), readAgainMs: again };
  if (settings.type === 'parquet') {
    const { createParquetSink } = await import('../sinks/parquet/parquet-sink.ts');
    return createParquetSink({ ...files, scheme: settings.partition, compression: settings.compression });
  }
  const { createIcebergSink } = await import('../sinks/iceberg/iceberg-sink.ts');
  const { warehouse, namespace, catalog, keepSnapshots: keep } = settings;
  const where = { ...files, warehouse, namespace, ...(catalog.type === 'rest' && { rest: catalog }) };
  return createIcebergSink({ ...where, maintenance: { keep } });
}
