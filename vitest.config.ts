import { defineConfig } from 'vitest/config';

/** They count requests by the second, or interrupt what is nearly done: others beside them would be what is measured. */
const ALONE = [
  'test/integration/budgets.test.ts',
  'test/integration/budget-processes.test.ts',
  'test/integration/cli-interrupt.test.ts',
  'test/integration/worker-budget.test.ts',
  'test/unit/api-pace*.test.ts',
];

const PURE = ['test/contract/**/*.test.ts', 'test/property/**/*.test.ts', 'test/unit/**/*.test.ts'];

export default defineConfig({
  test: {
    // Real servers for the run; `freshDatabase()` of test/support/postgres.ts gives a file its own database.
    globalSetup: ['test/support/global-postgres.ts', 'test/support/global-redis.ts', 'test/support/global-chromium.ts'],
    // Real servers start inside tests; a slow machine must not turn them into failures.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Only for `npm run prove`, which counts what they try.
    setupFiles: process.env.TRIBUTARY_PROOF ? ['test/support/count-fuzz.ts'] : [],
    // A focused test left behind would silently shrink the suite.
    allowOnly: false,
    passWithNoTests: false,
    projects: [
      {
        extends: true,
        // They keep nothing between files, so that files of one worker can share what they import.
        test: {
          name: 'pure',
          include: PURE,
          exclude: ALONE,
          isolate: false,
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        // Most of these wait for servers and processes: three at a time keep two cores busy.
        test: {
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: [...PURE, ...ALONE],
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      { extends: true, test: { name: 'alone', include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
});
