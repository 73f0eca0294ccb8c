import type { Fault } from '../model/errors.ts';
import { backfillStream } from './backfill-stream.ts';
import type { StreamJob, SyncDeps } from './job.ts';
import { joined } from './plan.ts';
import { isClean, type Verdict } from './verdict.ts';
import { verifyStream } from './verify-stream.ts';

/** `after` is the same comparison once what differed was read again; absent where nothing did. A fault stopped the repair. */
export type Repair = { before: Verdict } & (
  | { after: Verdict | undefined; fault: undefined }
  | { after: undefined; fault: Fault }
);

/** Reads again what differs, then compares again: a repair counts only when it is proven. */
export async function repairStream(deps: SyncDeps, job: StreamJob, before: Verdict): Promise<Repair> {
  if (isClean(before)) return { before, after: undefined, fault: undefined };
  const windows = joined(before.sinks.flatMap((sink) => sink.windows));
  for (const window of windows) {
    const { fault } = await backfillStream(deps, job, { window, force: true });
    if (fault) return { before, after: undefined, fault };
  }
  return { before, after: await verifyStream(deps, job, before.window), fault: undefined };
}

/** Every sink holds what it should, and all of it could be compared. */
export function isSound({ before, after, fault }: Repair): boolean {
  const last = after ?? before;
  return !fault && isClean(last) && last.doubts.length === 0;
}
