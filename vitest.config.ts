import { defineConfig } from 'vitest/config';
import { ALONE, DEEP } from './test/tiers.ts';

const EVERY = ['test/**/*.test.ts'];
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
    // `npm test` runs the first two, `npm run test:deep` the others; `npx vitest run FILE` finds a file in whichever it is.
    projects: [
      {
        extends: true,
        // They keep nothing between files, so that files of one worker can share what they import.
        test: { name: 'first-pure', include: PURE, exclude: [...DEEP, ...ALONE], isolate: false, maxWorkers: 3 },
      },
      {
        extends: true,
        // Most of these wait for servers and processes: three at a time keep two cores busy.
        test: { name: 'first', include: EVERY, exclude: [...PURE, ...DEEP, ...ALONE], maxWorkers: 3 },
      },
      {
        extends: true,
        test: { name: 'deep', include: [...DEEP], exclude: [...ALONE], maxWorkers: 3 },
      },
      {
        extends: true,
        test: { name: 'deep-alone', include: [...ALONE], maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
