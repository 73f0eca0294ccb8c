import fc from 'fast-check';
import { recordCase } from './proof.ts';

/** Loaded into every test file of `npm run prove`: each run of a property is a case. */
fc.configureGlobal({
  reporter(details) {
    recordCase({ suite: 'fuzz', name: 'property', survived: !details.failed, times: details.numRuns });
    // A custom reporter must throw the failure.
    if (details.failed) throw new Error(fc.defaultReportMessage(details));
  },
});
