import type { StreamName } from '../model/streams.ts';

/** What can be set going: backfills. */

/** `GET /api/backfills`: the newest first. `GET /api/backfills/{id}` is one of them. */
export interface Backfills {
  backfills: Backfill[];
}

export interface Backfill {
  id: string;
  source: string;
  stream: StreamName;
  from: string;
  to: string;
  force: boolean;
  state: 'queued' | 'paused' | 'cancelled' | 'done' | 'failed';
  /** Whether a window of it is being read now. */
  running: boolean;
  createdAt: string;
  finishedAt: string | null;
  windows: { queued: number; running: number; done: number; failed: number };
  /** Of its windows, 0 to 1. */
  progress: number;
  rows: number;
  /** Null where it does not run, or no window of it has been read yet. */
  etaSeconds: number | null;
  message: string | null;
  /** What can be done with it now: `POST /api/backfills/{id}/{action}`, which answers with the backfill. */
  actions: BackfillAction[];
}

export type BackfillAction = 'pause' | 'resume' | 'cancel' | 'retry';

/** The body of `POST /api/backfills/price` and of `POST /api/backfills` (201, `Backfills`: one for each stream). */
export interface BackfillRequest {
  /** Default: all sources, all their streams. */
  source?: string;
  streams?: StreamName[];
  /** As on the command line: `2026-11-01`, `2026-11-01T10:00Z`, `7d`, `now`. `to` is exclusive. */
  from: string;
  to: string;
  /** Also what is proven complete already. */
  force?: boolean;
}

/** What a backfill will cost. Asking takes a few requests to the service, and therefore some seconds. */
export type { PriceReport as BackfillPrice, SourcePrice, StreamPrice } from '../sync/price-report.ts';
