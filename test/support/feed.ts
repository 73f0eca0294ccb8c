import type { Database } from '../../src/cursor/database/index.ts';
import { acquireLease } from '../../src/cursor/leases.ts';
import { emptyTally, newRunId, type Tally } from '../../src/cursor/runs.ts';
import type { Slice } from '../../src/extract/reader.ts';
import { createFlatten } from '../../src/model/flatten.ts';
import { parseJson, stringifyJson } from '../../src/model/json.ts';
import { STREAMS, type StreamName } from '../../src/model/streams.ts';
import type { Sink } from '../../src/sinks/sink.ts';
import { createCommitter } from '../../src/sync/committer.ts';
import { createSchemaEvolution, describeSchemaChange, type UnknownFields } from '../../src/sync/schema-evolution.ts';
import { NOON, newSource } from './sink-harness.ts';

export type Feed = Awaited<ReturnType<typeof openFeed>>;

interface FeedOptions {
  state: Database;
  sinks: readonly Sink[];
  stream: StreamName;
  source?: string;
  unknownFields?: UnknownFields;
}

/** The engine from records to tables, without a service. */
export async function openFeed(options: FeedOptions) {
  const { state, sinks, stream, source = newSource(), unknownFields = 'evolve' } = options;
  const lease = await acquireLease(state, source, stream, `feed of ${source}`);
  const flatten = createFlatten(STREAMS[stream]);
  return {
    source,
    /** Writes the records of one batch; returns the counts of the run. */
    async send(records: readonly object[], slice: Partial<Slice> = {}): Promise<Tally> {
      const tally = emptyTally();
      const runId = newRunId();
      const committer = createCommitter({
        sinks,
        evolver: createSchemaEvolution({
          state,
          stream: STREAMS[stream],
          source,
          runId,
          unknownFields,
          onSchemaChange: (change) => void tally.schemaChanges.push(describeSchemaChange(change)),
        }),
        base: () => ({ source, runId, epoch: lease.epoch, since: NOON }),
        tally,
        serverNow: () => NOON + 86_400_000,
        onCommit: () => {},
      });
      // As JSON text, which preserves integers beyond 2^53 and keys called __proto__.
      const rows = records.map((record) => flatten(parseJson(stringifyJson(record))));
      await committer.add({ window: undefined, certified: undefined, rejected: [], ...slice, rows });
      await committer.flush();
      return tally;
    },
    release: () => lease.release(),
  };
}

/** A record of any stream: its identity, plus the given fields. */
export function recordOf(id: string, fields: Readonly<Record<string, unknown>> = {}, minute = 0): object {
  const { click, ...rest } = fields;
  return {
    timestamp: new Date(NOON + minute * 60_000).toISOString(),
    eventId: id,
    click: { id, ...(click as object | undefined) },
    ...rest,
  };
}
