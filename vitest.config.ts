import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // One real Postgres for the run; `freshDatabase()` of test/support/postgres.ts gives a file its own database on it.
    globalSetup: ['test/support/global-postgres.ts', 'test/support/global-redis.ts'],
    // Real servers start inside tests; a slow machine must not turn them into failures.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // A focused test left behind would silently shrink the suite.
    allowOnly: false,
    passWithNoTests: false,
  },
});
