/** The types of API responses, collected for the page and for tests. Each is derived from the zod schema of its route. */

export type { SourcePrice, StreamPrice } from '../sync/backfill/price.ts';
export type { RepairReport, VerifyReport } from '../sync/maintain/verify-job.ts';
export type { ApiError } from './answers.ts';
export type { Readiness } from './dependencies.ts';
export type { LiveEvent, Topic } from './live.ts';
export type * from './routes/analytics.ts';
export type * from './routes/backfills.ts';
export type * from './routes/coverage.ts';
export type * from './routes/diagnostics.ts';
export type * from './routes/maintain.ts';
export type * from './routes/overview.ts';
export type * from './routes/quarantine.ts';
export type * from './routes/runs.ts';
export type * from './routes/session.ts';
export type * from './routes/sync.ts';
export type * from './routes/under-way.ts';
export type * from './routes/verifications.ts';
