import { chunksOf } from '../sync/backfill-plan.ts';
import type { BackfillRequest } from '../sync/backfill-stream.ts';
import type { StreamJob, SyncDeps } from '../sync/job.ts';
import { priceBackfill } from '../sync/price.ts';
import { type BackfillDeps, enqueueBackfill } from './backfills.ts';

/**
 * Looks at the service as `--plan` does, and gives what is to be read to the queue in pieces of a few minutes each. Returns
 * the backfill's id.
 */
export async function startBackfill(
  deps: BackfillDeps & Pick<SyncDeps, 'sinks' | 'signal'>,
  job: StreamJob,
  { window: asked, force = false }: BackfillRequest,
): Promise<string> {
  const { window, toRead, rows } = await priceBackfill(deps, job, { window: asked, force });
  const openMs = toRead.reduce((sum, { start, end }) => sum + end - start, 0);
  const chunks = toRead.flatMap((part) => chunksOf(part, rows / Math.max(1, openMs)));
  const { source, stream } = job;
  // Where all of it is too young to be called complete, what was asked for is what is written down.
  const whole = window.start < window.end ? window : asked;
  return enqueueBackfill(deps, { source, stream, window: whole, force, chunks });
}
