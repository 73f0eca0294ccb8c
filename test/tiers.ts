/**
 * The second tier, `npm run test:deep`. Every test that is not named here is in the first, `npm test`, which a contributor runs before
 * every commit: four minutes on two cores. A test belongs here when it kills, breaks or waits, when it tries the many variants of what the
 * first tier tries once, or when its subject is the project and not the program: documents, benches, releases.
 */
export const DEEP: string[] = [
  // What kills, breaks or waits.
  'test/crash/*.test.ts',
  'test/faults/*.test.ts',
  'test/integration/backfill-beside.test.ts',
  'test/integration/backfill-odd-pages.test.ts',
  'test/integration/backfill-waits.test.ts',
  'test/integration/cli-alerts.test.ts',
  'test/integration/embedded*.test.ts',
  'test/integration/cli-work-terminal.test.ts',
  'test/integration/forget-races.test.ts',
  'test/integration/http-attacks.test.ts',
  'test/integration/iceberg-worker.test.ts',
  'test/integration/idle-poll.test.ts',
  'test/integration/lake-watched.test.ts',
  'test/integration/links.test.ts',
  'test/integration/large-pages.test.ts',
  'test/integration/stale-statistics.test.ts',
  'test/integration/sync-interrupted.test.ts',
  'test/integration/worker-backfill.test.ts',
  'test/integration/worker-bugs.test.ts',
  'test/integration/worker-many.test.ts',
  'test/integration/worker-shutdown.test.ts',

  // Many variants of what the first tier tries once.
  'test/corpus/*.test.ts',
  'test/contract/sandbox-parameters.test.ts',
  'test/integration/abuse.test.ts',
  'test/integration/budgets.test.ts',
  'test/integration/cli-audit.test.ts',
  'test/integration/cli-backfill.test.ts',
  'test/integration/cli-coverage.test.ts',
  'test/integration/cli-cursor.test.ts',
  'test/integration/cli-demo.test.ts',
  'test/integration/cli-doctor.test.ts',
  'test/integration/cli-errors.test.ts',
  'test/integration/cli-export.test.ts',
  'test/integration/cli-filters.test.ts',
  'test/integration/cli-forget.test.ts',
  'test/integration/cli-json.test.ts',
  'test/integration/cli-money.test.ts',
  'test/integration/cli-quarantine.test.ts',
  'test/integration/cli-sandbox.test.ts',
  'test/integration/cli-service-answers.test.ts',
  'test/integration/http-access.test.ts',
  'test/integration/forget.test.ts',
  'test/integration/http-api.test.ts',
  'test/integration/http-backfills.test.ts',
  'test/integration/http-export.test.ts',
  'test/integration/http-live.test.ts',
  'test/integration/http-metrics.test.ts',
  'test/integration/http-queues.test.ts',
  'test/integration/http-reload.test.ts',
  'test/integration/http-secrets.test.ts',
  'test/integration/http-verbs.test.ts',
  'test/integration/iceberg-changed.test.ts',
  'test/integration/iceberg-rest.test.ts',
  'test/integration/iceberg-s3.test.ts',
  'test/integration/iceberg-sink*.test.ts',
  'test/integration/iceberg-tables.test.ts',
  'test/integration/keep-views.test.ts',
  'test/integration/lake-and-warehouse.test.ts',
  'test/integration/lake-forget.test.ts',
  'test/integration/lake-groups.test.ts',
  'test/integration/lake-neighbours.test.ts',
  'test/integration/lake-partitions.test.ts',
  'test/integration/lake-s3.test.ts',
  'test/integration/lake-sink*.test.ts',
  'test/integration/lake-views.test.ts',
  'test/integration/memory-sink.test.ts',
  'test/integration/missing.test.ts',
  'test/integration/months-maintenance.test.ts',
  'test/integration/one-commit.test.ts',
  'test/integration/poolers.test.ts',
  'test/integration/postgres-15.test.ts',
  'test/integration/postgres-few-rows.test.ts',
  'test/integration/postgres-sink-kinds.test.ts',
  'test/integration/privacy.test.ts',
  'test/integration/read-only.test.ts',
  'test/integration/run-kinds.test.ts',
  'test/integration/run-log.test.ts',
  'test/integration/secrets*.test.ts',
  'test/integration/several-sinks.test.ts',
  'test/integration/sink-keep.test.ts',
  'test/integration/sink-restored*.test.ts',
  'test/integration/source-identity.test.ts',
  'test/integration/sync-traits.test.ts',
  'test/integration/traces.test.ts',
  'test/integration/upgrade.test.ts',
  'test/integration/verify-sinks.test.ts',
  'test/integration/window-rows.test.ts',
  'test/integration/worker-policy.test.ts',
  'test/unit/third-author*.test.ts',
  'test/unit/extraction-archives.test.ts',
  'test/unit/extraction-costs.test.ts',
  'test/unit/extraction-newest-ties.test.ts',
  'test/unit/extraction-services.test.ts',
  'test/unit/extraction-traits.test.ts',
  'test/unit/sync-from-afar.test.ts',
  'test/browser/control-room-work.test.ts',
  'test/browser/page*.test.ts',

  // The project, not the program.
  'test/integration/docs-*.test.ts',
  'test/integration/package*.test.ts',
  'test/unit/bench.test.ts',
  'test/unit/docker*.test.ts',
  'test/unit/docs-*.test.ts',
  'test/unit/licences.test.ts',
  'test/unit/page.test.ts',
  'test/unit/peers.test.ts',
  'test/unit/prove.test.ts',
  'test/unit/release.test.ts',
];

/** Of the second tier too, and one at a time: they count requests by the second, or interrupt what is nearly done. */
export const ALONE: string[] = ['test/integration/budget-processes.test.ts', 'test/integration/cli-interrupt.test.ts'];

/**
 * Of both tiers. The first tries the same cases every time, so that it fails for what was changed and not by chance; the second tries
 * others each time, of some several times as many.
 */
export const SAMPLED: string[] = ['test/property/*.test.ts', 'test/integration/sink-changed.test.ts'];

/** Set by `npm run test:deep`. */
export const isDeep = process.env.TRIBUTARY_TIER === 'deep';

/** They need no server, so that they share a process. */
export const PURE = ['test/contract/**/*.test.ts', 'test/property/**/*.test.ts', 'test/unit/**/*.test.ts'];

export const BROWSER = ['test/browser/**/*.test.ts'];
