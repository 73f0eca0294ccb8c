import { defineConfig } from 'vitest/config';
import { ALONE, BROWSER, DEEP, isDeep, PURE, SAMPLED } from './test/tiers.ts';

const isProof = process.env.TRIBUTARY_PROOF !== undefined;

const EACH = {
  // Real servers start inside tests; a slow machine must not turn them into failures.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // Only for `npm run prove`, which counts what they try.
  setupFiles: isProof ? ['test/support/count-fuzz.ts'] : [],
  // Most tests wait for servers and processes: three at a time keep two cores busy.
  maxWorkers: 3,
  maxConcurrency: 3,
};

const SECOND = [...DEEP, ...ALONE, ...(isDeep ? SAMPLED : [])];
const WITH_BROWSER = { ...EACH, globalSetup: ['test/support/global-chromium.ts'] };

export default defineConfig({
  test: {
    // One server of each kind for the run; `freshDatabase()` and `freshRedis()` of test/support/ give a file its own database on it.
    globalSetup: ['test/support/global-postgres.ts', 'test/support/global-redis.ts'],
    reporters: ['default', 'test/support/last-line.ts'],
    // A focused test left behind would silently shrink the suite.
    allowOnly: false,
    passWithNoTests: false,
    // `npm test` runs what begins with `first`, `npm run test:deep` the others; `npx vitest run FILE` finds a file in whichever it is.
    projects: [
      // These keep nothing between files, so that files of one worker can share what they import.
      {
        test: {
          ...EACH,
          name: 'first-pure',
          include: PURE,
          exclude: SECOND,
          isolate: false,
          setupFiles: isProof ? EACH.setupFiles : ['test/support/fixed-seed.ts'],
        },
      },
      { test: { ...EACH, name: 'first', include: ['test/**/*.test.ts'], exclude: [...PURE, ...BROWSER, ...SECOND] } },
      { test: { ...WITH_BROWSER, name: 'first-browser', include: BROWSER, exclude: SECOND } },
      {
        test: {
          ...EACH,
          name: 'deep',
          include: isDeep ? [...DEEP, ...SAMPLED] : DEEP,
          exclude: [...BROWSER, ...ALONE],
        },
      },
      {
        test: {
          ...WITH_BROWSER,
          name: 'deep-browser',
          include: DEEP.filter((file) => file.startsWith('test/browser/')),
        },
      },
      { test: { ...EACH, name: 'deep-alone', include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
});
