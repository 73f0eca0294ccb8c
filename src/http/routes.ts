import type { ControlDeps } from './deps.ts';
import type { Route } from './route.ts';
import { auditRoute } from './routes/audit.ts';
import { backfillRoutes } from './routes/backfills.ts';
import { budgetRoute } from './routes/budget.ts';
import { coverageRoutes } from './routes/coverage.ts';
import { cursorRoutes } from './routes/cursors.ts';
import { diagnosticsRoutes } from './routes/diagnostics.ts';
import { exportRoute } from './routes/export.ts';
import { forgetRoute } from './routes/forget.ts';
import { linksRoute } from './routes/links.ts';
import { overviewRoute } from './routes/overview.ts';
import { quarantineRoutes } from './routes/quarantine.ts';
import { rowsRoute } from './routes/rows.ts';
import { runsRoutes } from './routes/runs.ts';
import { syncRoutes } from './routes/sync.ts';
import type { VerificationRuns } from './routes/verification-runs.ts';
import { verificationRoutes } from './routes/verifications.ts';

/** Everything that can be asked under /api, but for the session, the events and the description itself. */
export const routesOf = (deps: ControlDeps, verifications: VerificationRuns): Route[] => [
  overviewRoute(deps),
  ...coverageRoutes(deps),
  rowsRoute(deps),
  budgetRoute(deps),
  ...runsRoutes(deps),
  ...backfillRoutes(deps),
  ...quarantineRoutes(deps),
  linksRoute(deps),
  ...syncRoutes(deps),
  ...verificationRoutes(deps, verifications),
  exportRoute(deps),
  ...cursorRoutes(deps),
  forgetRoute(deps),
  ...diagnosticsRoutes(deps),
  auditRoute(deps),
];
