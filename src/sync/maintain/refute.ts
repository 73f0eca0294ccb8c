import { lockCertified, reopen, writeForeign } from '../../cursor/holdings/attestations.ts';
import { acquireLease, checkFence } from '../../cursor/leases.ts';
import { STREAMS } from '../../model/streams.ts';
import { countsIn, type Sink } from '../../sinks/sink.ts';
import type { StreamJob, SyncDeps } from '../job.ts';
import { isClean, type SinkResult, type VerifyResult } from './comparison.ts';

/**
 * What a comparison with the service has refuted is not complete: its windows are reopened, watermark and views fall back, and the next
 * sync reads them again. Under the lease, so that no run certifies them meanwhile from what it knew before.
 */
export async function refute(deps: SyncDeps, job: StreamJob, result: VerifyResult): Promise<void> {
  if (isClean(result)) return;
  const { state, sinks, holder, signal, onWait } = deps;
  const { source, stream } = job;
  const lease = await acquireLease(state, source, stream, holder, {
    givesWay: true,
    signal,
    ...(onWait && { onWait: (other) => onWait({ source, stream, holder: other }) }),
  });
  try {
    for (const found of result.sinks) {
      const sink = sinks.find(({ name }) => name === found.sink);
      if (sink) await refuteIn(deps, sink, found, { source, stream, epoch: lease.epoch });
    }
  } finally {
    await lease.release();
  }
}

async function refuteIn(
  { state }: SyncDeps,
  sink: Sink,
  { refuted, miscounted, foreign }: SinkResult,
  leased: { source: string; stream: StreamJob['stream']; epoch: number },
): Promise<void> {
  const { source, stream } = leased;
  const track = { source, stream, sink: sink.name };
  const windows = await lockCertified(state, track, [...refuted, ...miscounted, ...foreign]);
  // Not inside of the transaction: the sink may need a connection of the same pool.
  const held = sink.attest && windows.length > 0 ? await countsIn(sink, STREAMS[stream], source)(windows) : [];
  if (windows.length > 0) await sink.releaseKeys?.(STREAMS[stream], source, windows);
  const note = 'verify found that it does not hold what the service has';
  await state.transaction(async (tx) => {
    await checkFence(tx, leased);
    await reopen(
      tx,
      track,
      windows.map((window, i) => ({ ...window, rows: held[i] ?? window.rows, note })),
    );
    if (foreign.length > 0) await writeForeign(tx, track, foreign, foreign);
  });
  await sink.publishProgress?.({ source, stream }, true);
}
