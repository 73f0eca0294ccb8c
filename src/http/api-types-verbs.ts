import type { TrackReport } from '../cursor/tracks.ts';
import type { Finding } from '../model/finding.ts';
import type { StreamName } from '../model/streams.ts';
import type { Touched } from '../sync/forget.ts';
import type { RepairReport } from '../sync/verdict-report.ts';

/** Further verbs of the command line: verify, cursor, forget, doctor. */

/** `GET /api/verifications`: those that this process was asked for since it started, the newest first. */
export interface Verifications {
  verifications: VerificationHead[];
}

export interface VerificationHead {
  id: string;
  state: 'running' | 'done' | 'failed' | 'cancelled';
  streams: Array<{ source: string; stream: StreamName }>;
  from: string;
  to: string;
  repair: boolean;
  startedAt: string;
  finishedAt: string | null;
  /** 0 to 1. */
  progress: number;
  /** Whether every sink holds what it should, after the repair if there was one; null until that is known. */
  clean: boolean | null;
  /** What stopped it. */
  message: string | null;
}

/** `GET /api/verifications/{id}`: with what was found so far, stream by stream. */
export interface Verification extends VerificationHead {
  verdicts: RepairReport[];
}

export type { RepairReport, VerdictReport } from '../sync/verdict-report.ts';

/** The body of `POST /api/verifications` (202, `Verification`). It runs by itself; one at a time. */
export interface VerifyRequest {
  /** Default: all sources, all their streams. */
  source?: string;
  streams?: StreamName[];
  /** Default: every sink. */
  sink?: string;
  from: string;
  to: string;
  /** Reads again what differs, and compares again. */
  repair?: boolean;
  /** Two sinks: the second is held against the first, and the service is not asked. */
  between?: string[];
}

/** `GET /api/cursors`: how far each stream is proven, in each sink. */
export interface Cursors {
  cursors: TrackReport[];
}

/** The body of `POST /api/cursors/reset`, and with `to` of `POST /api/cursors/move` (both `Cursors`). */
export interface CursorRequest {
  /** Needed where several sources have the stream. */
  source?: string;
  streams: StreamName[];
  /** Default: every sink. */
  sink?: string;
}

export interface CursorMove extends CursorRequest {
  to: string;
  /** Also forward, over time that was never read: events may be missing there for good. */
  force?: boolean;
}

/** The body of `POST /api/forget`: one of customer, click and everything. It cannot be undone. */
export interface ForgetRequest {
  source: string;
  customer?: string;
  click?: string;
  everything?: true;
}

/** How many rows were touched, by table or place. */
export interface Forgotten {
  touched: Touched;
}

/** `GET /api/doctor`: everything that a sync needs, looked at now. Asks each service once. */
export interface Examination {
  findings: Array<Record<'fix' | 'mend', string | null> & Pick<Finding, 'level' | 'subject' | 'says'>>;
}
