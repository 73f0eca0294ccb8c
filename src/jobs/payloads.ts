import type { Instant } from '../model/instant.ts';
import type { SyncName } from '../model/streams.ts';

/** Names and windows, never keys or rows: the queue's database tells nothing, and a lost job is made again. */
export interface SyncPayload {
  source: string;
  stream: SyncName;
}

export interface WindowPayload {
  backfill: string;
  /** Names the window within its backfill. */
  start: Instant;
}

export type ParentPayload = Pick<WindowPayload, 'backfill'>;

/** A job by its own name: while it waits or runs, another of that name is not added. */
export interface QueuedJob<T = SyncPayload | WindowPayload | ParentPayload> {
  id: string;
  name: string;
  data: T;
}

/** No colons: the queue uses them for itself. */
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
