import { createPace } from '../../src/api/pace.ts';
import { slotsSuite } from '../support/slots-suite.ts';

slotsSuite('the pace of one process', async () => {
  let now = 1000;
  return {
    open: async (requestsPerSecond) => createPace(requestsPerSecond, () => now),
    pass: async (ms) => {
      now += ms;
    },
    now: () => now,
    toleranceMs: 5,
  };
});
