import type { Instant } from '../model/instant.ts';
import type { SyncName } from '../model/streams.ts';

/** Payloads hold names and windows, never keys or rows: the queue's database reveals nothing, and a lost job can be recreated. */
export interface SyncPayload {
  source: string;
  stream: SyncName;
}

export interface WindowPayload {
  backfill: string;
  /** Identifies the window within its backfill. */
  start: Instant;
}

export type ParentPayload = Pick<WindowPayload, 'backfill'>;

/** `id` deduplicates: while a job waits or runs, another with the same id is not added. */
export interface QueuedJob<T = SyncPayload | WindowPayload | ParentPayload> {
  id: string;
  name: string;
  data: T;
}

/** Ids have no colons: BullMQ uses them as separators. */
export const syncJob = ({ source, stream }: SyncPayload): QueuedJob<SyncPayload> => ({
  id: `sync.${source}.${stream}`,
  name: `${source}/${stream}`,
  data: { source, stream },
});

export const windowJob = ({ backfill, start }: WindowPayload): QueuedJob<WindowPayload> => ({
  id: `backfill.${backfill}.${start}`,
  name: `window ${new Date(start).toISOString()}`,
  data: { backfill, start },
});

export const parentJob = ({ backfill }: ParentPayload): QueuedJob<ParentPayload> => ({
  id: `backfill.${backfill}`,
  name: `backfill ${backfill}`,
  data: { backfill },
});
