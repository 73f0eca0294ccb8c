import { readCursor } from '../../cursor/cursors.ts';
import { withLease } from '../../cursor/leases.ts';
import { dropQuarantined, type Quarantined } from '../../cursor/quarantine.ts';
import { A_BUG, emptyTally, finishRun, newRunId, startRun } from '../../cursor/runs.ts';
import { BadRecord, ConfigError, Fault, type Where } from '../../model/errors.ts';
import type { Flatten, Row } from '../../model/flatten.ts';
import { parseJson } from '../../model/json.ts';
import { withoutLeftOut } from '../../model/privacy.ts';
import { STREAMS } from '../../model/streams.ts';
import type { Sink } from '../../sinks/sink.ts';
import { createSinkCommitter } from '../committer.ts';
import type { MaintainDeps, StreamJob } from '../job.ts';
import { createSchemaEvolution } from '../schema-evolution.ts';

/** Quarantined records of one stream, and the current config of that stream. */
interface RetryJob extends Pick<StreamJob, 'source' | 'stream' | 'unknownFields'> {
  flatten: Flatten;
  records: readonly Quarantined[];
}

export interface Retried {
  id: number;
  /** Why the record still cannot be used; undefined once it is in the tables. */
  reason: string | undefined;
}

/** Retries records, as the rules or the record may have changed. Valid ones are written into every sink; the others stay. */
export async function retryQuarantined(deps: MaintainDeps, job: RetryJob): Promise<Retried[]> {
  const { state, holder } = deps;
  const { source, stream } = job;
  const results = job.records.map((record) => ({ id: record.id, ...readAgain(record, job.flatten) }));
  const rows = results.flatMap(({ row }) => (row ? [row] : []));
  if (rows.length > 0) {
    await withLease(state, source, stream, holder, async ({ epoch }) => {
      await write(deps, job, epoch, rows);
      // Dropped only after the commit, so that a crash loses no record. After a crash, a record is upserted again, which is harmless.
      const used = results.filter(({ row }) => row).map(({ id }) => id);
      await dropQuarantined(state, used);
    });
  }
  return results.map(({ id, reason }) => ({ id, reason }));
}

function readAgain({ record }: Quarantined, flatten: Flatten): { row?: Row; reason: string | undefined } {
  try {
    return { row: flatten(withoutLeftOut(parseJson(record))), reason: undefined };
  } catch (error) {
    // Recovery: the record stays in quarantine, with the current reason.
    if (error instanceof BadRecord) return { reason: error.message };
    if (error instanceof SyntaxError) return { reason: 'the record is no longer valid JSON' };
    throw error;
  }
}

async function write(deps: MaintainDeps, job: RetryJob, epoch: number, rows: readonly Row[]): Promise<void> {
  const { state, sinks } = deps;
  const { source, unknownFields } = job;
  const stream = STREAMS[job.stream];
  const runId = newRunId();
  const tally = emptyTally();
  let written = 0;
  /** One sink at a time, because each has its own `since`: an earlier one of another sink would open time that was never read. */
  const writeInto = async (sink: Sink): Promise<void> => {
    await sink.recover?.({ source, stream: stream.name, epoch });
    const cursor = await readCursor(state, { source, stream: stream.name, sink: sink.name });
    // Nothing was ever synced into this sink: its first sync reads these records and quarantines the bad ones again.
    if (!cursor) return;
    const committer = createSinkCommitter({
      ...{ sink, tally, isFirst: written === 0, serverNow: Date.now, onCommit: () => {} },
      evolver: createSchemaEvolution({ state, stream, source, runId, unknownFields, onSchemaChange: () => {} }),
      base: () => ({ source, runId, epoch, since: cursor.since }),
    });
    await committer.add({ window: undefined, certified: undefined, rows, rejected: [] });
    await committer.flush();
    await sink.publishProgress?.({ source, stream: stream.name });
    written++;
  };
  await startRun(state, { id: runId, kind: 'retry', source, stream: stream.name });
  try {
    for (const sink of sinks) await writeInto(sink);
    if (written === 0) throw nowhere({ source, stream: stream.name });
    await finishRun(state, runId, { state: 'done' }, tally);
  } catch (error) {
    const message = error instanceof Fault ? error.message : A_BUG;
    await finishRun(state, runId, { state: 'failed', message }, tally);
    throw error;
  }
}

const nowhere = (where: Where): ConfigError =>
  new ConfigError('nothing has been synced into these sinks yet: there is nowhere to write the records', {
    where,
    kept: 'the records stay where they are',
    next: 'run tributary sync first',
  });
