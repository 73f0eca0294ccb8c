import type { Log } from '../../src/model/log.ts';

/** For code whose log lines are not what the test is about. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
};
