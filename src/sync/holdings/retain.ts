import { forgetBefore, writePruned } from '../../cursor/holdings/attestations.ts';
import { checkFence } from '../../cursor/leases.ts';
import { ConfigError } from '../../model/errors.ts';
import { type Instant, toIso } from '../../model/instant.ts';
import { STREAMS } from '../../model/streams.ts';
import { DAY_MS, startOfDay, type Window } from '../../model/window.ts';
import { abilityOf, countsIn, type Sink } from '../../sinks/sink.ts';
import type { StreamJob, SyncDeps } from '../job.ts';
import type { Known } from './before-run.ts';

/** Implements `keep` of a sink: older events are deleted, no longer covered by the ledger, and not read again. */

/** Events before this are not kept. Rounded to whole days, so that a day is either complete or gone. */
export const keptFrom = ({ keepMs }: Pick<Sink, 'keepMs'>, now: Instant): Instant =>
  keepMs === undefined ? Number.NEGATIVE_INFINITY : startOfDay(now - keepMs);

/** The most delete steps per run: the rest is left to the next runs, so that a poll stays short. */
const MOST_STEPS = 20;

/** Deletes old events once a day, when another day has expired. Returns whether the ledger changed. */
export async function retain(
  { state, log, signal }: Pick<SyncDeps, 'state' | 'log' | 'signal'>,
  { source, stream }: StreamJob,
  sink: Sink,
  { known, epoch, now }: { known: Known; epoch: number; now: Instant },
): Promise<boolean> {
  const before = keptFrom(sink, now);
  // Compares for equality: after a longer `keep`, a backfill may have restored older events.
  const isDone = (known.attestations.get(sink.name)?.prunedTo ?? Number.NEGATIVE_INFINITY) === before;
  if (isDone || known.cursors.get(sink.name) === undefined) return false;
  const feed = { source, stream, sink: sink.name };
  await state.transaction(async (tx) => {
    await checkFence(tx, { source, stream, epoch });
    await forgetBefore(tx, feed, before, countsIn(sink, STREAMS[stream], source));
  });
  const prune = abilityOf(sink, 'prune');
  let hasMore = true;
  for (let i = 0; hasMore && i < MOST_STEPS && !signal.aborted; i++)
    hasMore = await prune(STREAMS[stream], source, before);
  if (!hasMore) await writePruned(state, feed, before);
  log.info({ source, stream, sink: sink.name, before: toIso(before), hasMore }, 'deleted events older than keep');
  return true;
}

/** Refuses windows with expired events: reading them would waste requests, as they are deleted at once. */
export function refuseExpired(sinks: readonly Sink[], { start, end }: Window): void {
  const now = Date.now();
  const sink = sinks.find((one) => start < keptFrom(one, now));
  if (!sink) return;
  const from = keptFrom(sink, now);
  const days = Math.round((sink.keepMs ?? 0) / DAY_MS);
  throw new ConfigError(`sink "${sink.name}" keeps ${days} days: it holds nothing before ${toIso(from).slice(0, 10)}`, {
    where: { sink: sink.name },
    kept: 'everything; nothing was read or changed',
    next: `${from < end ? `choose --from ${toIso(from).slice(0, 10)}, ` : ''}keep more (sinks.${sink.name}.keep), or choose another sink with --sink`,
  });
}
