import type { Row } from '../../../src/model/flatten.ts';
import { createPostgresSink } from '../../../src/sinks/postgres/postgres-sink.ts';
import type { Partition } from '../../../src/sinks/postgres/table.ts';
import type { Sink } from '../../../src/sinks/sink.ts';
import { preparedCopy, rawCopy, stream } from '../../support/clicks.ts';
import { loadAll } from '../../support/loader.ts';
import { timed } from '../../support/measure.ts';
import type { Ground } from '../throughput.ts';

/**
 * Ways into Postgres. The fastest thing that it can do with the same rows is one binary COPY of bytes that are ready, into an identical
 * table with the same indexes. Every work begins with empty tables, except those that bring the same rows again.
 */
export function intoPostgres({ home: { db, url }, service, sync }: Ground, rows: readonly Row[]) {
  const prepared = preparedCopy(rows);
  let sink: Sink;
  let syncs = 0;

  const empty = async (partition: Partition = 'none'): Promise<void> => {
    await db.query({ text: 'drop schema if exists attribution cascade' });
    sink = createPostgresSink({ name: 'warehouse', db, schema: 'attribution', state: db, partition });
    await sink.prepare(stream);
  };
  const load = (batch?: number): Promise<number> => timed(() => loadAll(db, sink, rows, batch));
  const loadNew = async (partition: Partition, batch?: number): Promise<number> => {
    await empty(partition);
    return load(batch);
  };

  return {
    'raw COPY': async () => {
      await empty();
      await db.query({ text: 'create table attribution.raw (like attribution.clicks including all)' });
      return timed(() => db.transaction((tx) => tx.copyIn(rawCopy('attribution.raw'), prepared)));
    },
    'the sink, new rows': () => loadNew('none'),
    'the sink, the same rows again': () => load(),
    'the sink, new rows, batches of 1,000': () => loadNew('none', 1000),
    'the sink, new rows, batches of 20,000': () => loadNew('none', 20_000),
    'the sink in months, new rows': () => loadNew('month'),
    'the sink in months, the same rows again': () => load(),
    'the whole way into Postgres': async () => {
      await empty();
      // Another source each time: nothing is known of it.
      const source = `warehouse-${++syncs}`;
      return sync({ ...service, url, source, sinks: { warehouse: { type: 'postgres' } } });
    },
  };
}
