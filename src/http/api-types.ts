/** The API's answers as types, collected for the page and for tests. Each is derived from the zod schema beside its route. */

export type { SourcePrice, StreamPrice } from '../sync/backfill/price.ts';
export type { RepairReport, VerifyReport } from '../sync/maintain/verify-job.ts';
export type { ApiError } from './answers.ts';
export type { Readiness } from './dependencies.ts';
export type { LiveEvent, Topic } from './live.ts';
export type { Rows, TopLink, TopLinks } from './routes/analytics.ts';
export type {
  Backfill,
  BackfillAction,
  BackfillPrice,
  BackfillRequest,
  BackfillStart,
  Backfills,
} from './routes/backfills.ts';
export type { Coverage, CoverageWindows, TrackCoverage, WindowDetail } from './routes/coverage.ts';
export type { DayRun, DayState, EventRows } from './routes/coverage-days.ts';
export type { Budget, Diagnosis, KeyBudget, SchemaChanges } from './routes/diagnostics.ts';
export type { Cursors, Forgotten } from './routes/maintain.ts';
export type { Overview, StreamOverview, Trouble } from './routes/overview.ts';
export type { Quarantine, QuarantineRecord } from './routes/quarantine.ts';
export type { RunDetail, RunLog, RunRow, Runs } from './routes/runs.ts';
export type { AuditTrail, Session } from './routes/session.ts';
export type { SyncStarted } from './routes/sync.ts';
export type { Activity } from './routes/under-way.ts';
export type { Verifications } from './routes/verifications.ts';
export type { Verification } from './verification-runs.ts';
