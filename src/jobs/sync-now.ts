import type { Database } from '../cursor/database.ts';
import { makeDue } from '../cursor/parked.ts';
import { isLeased } from '../cursor/schedules.ts';
import type { JobQueue } from './bull.ts';
import { type SyncPayload, syncHint } from './payloads.ts';

/** A stream is due now, and a worker takes it up. False: somebody is at it already, and its rows are on their way. */
export async function syncNow(
  { state, queue }: { state: Database; queue: JobQueue },
  { source, stream }: SyncPayload,
): Promise<boolean> {
  if (await isLeased(state, source, stream)) return false;
  await makeDue(state, source, stream);
  await queue.hint('sync', syncHint({ source, stream }));
  return true;
}
