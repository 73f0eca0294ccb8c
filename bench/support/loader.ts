import { randomUUID } from 'node:crypto';
import type { Database } from '../../src/cursor/database/index.ts';
import { acquireLease } from '../../src/cursor/leases.ts';
import type { Row } from '../../src/model/flatten.ts';
import type { Sink } from '../../src/sinks/sink.ts';
import { stream } from './clicks.ts';

/** Loads rows into a sink like the engine: in batches, each committed under a lease, without reading. */
export interface Loader {
  commit(rows: readonly Row[]): Promise<void>;
  close(): Promise<void>;
}

export async function openLoader(state: Database, sink: Sink, source: string): Promise<Loader> {
  const { epoch, release } = await acquireLease(state, source, stream.name, 'bench');
  const feed = { source, stream: stream.name, sink: sink.name };
  return {
    async commit(rows) {
      const batch = await sink.open(stream);
      await batch.write(rows);
      const commitId = randomUUID();
      await batch.commit({ ...feed, commitId, runId: 'bench', epoch, since: 0, spans: [], newestSeen: undefined });
    },
    close: release,
  };
}

export async function loadAll(
  state: Database,
  sink: Sink,
  rows: readonly Row[],
  batch = sink.batchRows,
): Promise<void> {
  const loader = await openLoader(state, sink, 'main');
  for (let at = 0; at < rows.length; at += batch) await loader.commit(rows.slice(at, at + batch));
  await loader.close();
}
